"""From NVVM to machine code: LLVM, the installed assemblers, what they report and what they miscompile."""
