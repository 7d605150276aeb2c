"""From NVVM to machine code: LLVM, the installed assemblers, their resource reports and known miscompilations."""
