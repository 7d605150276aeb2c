"""`mf.fuse`: a Python function that compiles itself for the arrays it is called with."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, Unpack, overload

import numpy as np
from mlir import ir

from mlirfuse.api.argument_specs import gpu_specs, lowered_specs, name_of, numpy_specs, readable
from mlirfuse.api.compilations import Compilations
from mlirfuse.api.interpreted_results import write_results
from mlirfuse.api.options import Fusion, GridReductionKind, MixOrder, Options, check_names, check_options
from mlirfuse.api.parameters import in_order
from mlirfuse.api.recompiles import Signatures
from mlirfuse.api.signature import Extents
from mlirfuse.api.targets import INTERPRET, device_target
from mlirfuse.builder.extents import Reordered
from mlirfuse.builder.spec import ArgumentSpec
from mlirfuse.builder.trace import symbol_of, trace
from mlirfuse.compiler.compile import Compiled, Lowered
from mlirfuse.compiler.context import make_context
from mlirfuse.compiler.host_program import HostProgram
from mlirfuse.compiler.requests import set_requests
from mlirfuse.errors import ArgumentError
from mlirfuse.runtime.arrays.arrays import Argument, ArrayInfo
from mlirfuse.runtime.device import cuda
from mlirfuse.runtime.device.module import LoadedKernel, assemble_ahead, load
from mlirfuse.runtime.dispatch import Dispatcher
from mlirfuse.runtime.fast_calls import MISSED
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target, target_of

_Self = TypeVar("_Self")
_P = ParamSpec("_P")
_Q = ParamSpec("_Q")
_R = TypeVar("_R")


class Fused(Generic[_P, _R]):
    """A function that runs as few kernels as its dependences allow; made by `fuse`, with the function's signature.

    Call it on CuPy, PyTorch or JAX arrays (NumPy arrays with `target="interpret"`). One kernel serves every extent of
    the leading dimensions; a new dtype, rank, last extent or memory layout compiles again.
    """

    def __init__(
        self,
        fn: Callable[_P, _R],
        target: str | Target | None = None,
        schedule: Schedule | Mapping[str, Schedule] | None = None,
        fast_math: bool = False,
        mix_order: MixOrder = "auto",
        grid_reduction: GridReductionKind = "auto",
        dynamic_products: bool = False,
        fusion: Fusion = "auto",
        tune: bool = False,
        dynamic_reductions: bool = False,
    ):
        try:
            self._signature = inspect.signature(fn)
        except (TypeError, ValueError):
            raise ArgumentError(f"{fn!r} is no Python function", where="fuse", hint="fuse a function") from None
        for reserved in ("out", "stream"):
            parameter = self._signature.parameters.get(reserved)
            if parameter is not None and parameter.default is inspect.Parameter.empty:
                what = f"the function has a parameter {reserved!r}, which is reserved for calls of fused functions"
                raise ArgumentError(what, where=getattr(fn, "__name__", "fuse"), hint="give it another name")
        functools.update_wrapper(self, fn)
        self.__name__ = getattr(fn, "__name__", "fused")
        self._fn = fn
        self._options = Options(
            target=target,
            schedule=schedule,
            fast_math=fast_math,
            mix_order=mix_order,
            grid_reduction=grid_reduction,
            dynamic_products=dynamic_products,
            fusion=fusion,
            tune=tune,
            dynamic_reductions=dynamic_reductions,
        )
        check_options(self._options)
        self._interprets = target == INTERPRET
        if tune and self._interprets:
            hint = "leave tune out: the interpreter's times say nothing of a GPU's"
            raise ArgumentError("tune=True measures on a GPU, and target='interpret' has none", where="fuse", hint=hint)
        self._tune = tune
        self._target = None if target is None or target == INTERPRET else device_target(target)
        self._schedules = {f"{symbol_of(fn)}_0": schedule} if isinstance(schedule, Schedule) else dict(schedule or {})
        self._dynamic_reductions = dynamic_reductions
        self._fast_math, self._fusion = fast_math, fusion == "auto"
        self._mix_order, self._grid_reduction = mix_order, grid_reduction
        varies = not (schedule or tune or dynamic_products)
        self._compilations = Compilations(
            self._lower_call, tuple(self._signature.parameters), self._interprets, varies, dynamic_products
        )
        self._loaded: dict[tuple[int, int], dict[str, LoadedKernel]] = {}
        self._names = tuple(self._signature.parameters)
        self._signatures = Signatures(self.__name__, self._names)
        self._dispatch = Dispatcher(self._prepare, self._names)
        self._key = f"_fused_{self.__name__}"

    def __set_name__(self, owner: type, name: str) -> None:
        self._key = f"_fused_{owner.__qualname__}_{name}"

    @overload
    def __get__(self, instance: None, owner: type) -> Fused[_P, _R]: ...

    @overload
    def __get__(
        self: Fused[Concatenate[_Self, _Q], _R], instance: _Self, owner: type | None = None
    ) -> Fused[_Q, _R]: ...

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """The function as a method, which the object keeps; attributes of `self` are constants of the compilation.

        Raises:
            ArgumentError: the object has no `__dict__` to keep the compiled function in.
        """
        if instance is None or not isinstance(self._fn, FunctionType):
            return self
        method = MethodType(self._fn, instance)
        kept = getattr(instance, "__dict__", None)
        if not isinstance(kept, dict):
            what = f"a method of {instance!r}, which has no __dict__ to keep the compiled function in"
            raise ArgumentError(what, where=self.__name__, hint="fuse a function of arrays, and call it in the method")
        bound = kept.get(self._key)
        if bound is None or bound._fn != method:  # a copy of an object has what the object had
            bound = kept[self._key] = Fused(method, **self._options)
        return bound

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickles a function by its name, as Python does with plain ones, and a method by its object and its name."""
        if isinstance(self._fn, MethodType):
            return getattr, (self._fn.__self__, self.__name__)
        return getattr(self, "__qualname__", self.__name__)

    def __repr__(self) -> str:
        return f"<fused {getattr(self, '__qualname__', self.__name__)}>"

    # The function's own parameters; `out` and `stream` cannot stand beside a ParamSpec's (PEP 612).
    @overload
    def __call__(self, /, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...

    @overload
    def __call__(self, /, *args: Any, out: Any, stream: object = None, **kwargs: Any) -> _R: ...

    @overload
    def __call__(self, /, *args: Any, stream: object, **kwargs: Any) -> _R: ...

    def __call__(self, /, *args: Any, out: Any = None, stream: object = None, **kwargs: Any) -> Any:
        """Runs the function.

        Args:
            args: arrays on one GPU, Python numbers, and constants (None, strings, tuples, dtypes). A tensor of PyTorch
                that requires grad is refused, unless no gradients are recorded, as under `torch.no_grad()`.
            out: an array, or a tuple of arrays, to write the results into; they must not overlap the arguments.
            stream: a CuPy or PyTorch stream, or a `cudaStream_t` as an int; the framework's current stream if None.
            kwargs: arguments by name.

        Returns:
            An array of the arguments' framework, or a tuple or list of them, as the function returns.

        Raises:
            ArgumentError: an argument has the wrong kind, dtype, rank or device, or PyTorch wants a gradient for it.
            TraceError: the function does what cannot be traced.
        """
        if kwargs:
            args = in_order(self._signature, self.__name__, args, kwargs)
        result = self._dispatch.fast(args, out, stream)
        if result is not MISSED:
            return result
        return self._interpret(args, out) if self._interprets else self._dispatch.slowly(args, out, stream)

    def with_options(self, **options: Unpack[Options]) -> Fused[_P, _R]:
        """The same function with these options changed, and its other options kept.

        Raises:
            ArgumentError: an option does not exist, or its value is not one that `fuse` takes.
            TargetError: the target is unknown.
        """
        check_names(options)
        return Fused(self._fn, **(self._options | options))

    def lower(self, /, *specs: Any, **named: Any) -> Lowered:
        """Traces the function for arguments given as arrays, `TensorSpec`s, numbers or constants. Needs no GPU.

        Extents that a spec says are dynamic stay so, those of rows and columns of matrix products too.

        Raises:
            ArgumentError: the specs do not fit the parameters, or the function has the option `tune`.
            TraceError: the function cannot be traced.
        """
        if self._tune:
            hint = "use with_options(tune=False).lower(...), which takes what is recorded for a target"
            raise ArgumentError("tune=True measures calls, and lower makes none", where=self.__name__, hint=hint)
        specs = in_order(self._signature, self.__name__, specs, named) if named else specs
        target = self._target or target_of(None)
        return self._lower(lowered_specs(specs, self._names), target, dynamic=(True, True))

    def _lower_call(
        self,
        specs: Sequence[ArgumentSpec],
        target: Target,
        notes: tuple[str, ...],
        device: str | None,
        copies: tuple[int, ...],
        order: Reordered,
        dynamic_products: bool,
        context: ir.Context,
    ) -> Lowered:
        dynamic = dynamic_products, self._dynamic_reductions
        return self._lower(specs, target, notes, device, copies, order, dynamic=dynamic, context=context)

    def _lower(
        self,
        specs: Sequence[ArgumentSpec],
        target: Target,
        notes: tuple[str, ...] = (),
        device: str | None = None,
        copies: tuple[int, ...] = (),
        order: Reordered | None = None,
        *,
        dynamic: tuple[bool, bool],
        context: ir.Context | None = None,
    ) -> Lowered:
        module = trace(
            self._fn,
            list(specs),
            context=context or make_context(),
            dynamic_products=dynamic[0],
            dynamic_reductions=dynamic[1],
            fusion=self._fusion,
            known=order,
        )
        set_requests(module, self._schedules, self._mix_order, self._grid_reduction, copies)
        return Lowered(module, target, notes, self._fast_math, tuned=True, device=device)

    @property
    def _compiled(self) -> dict[tuple[object, ...], Compiled]:
        return self._compilations.compiled

    @property
    def _compile(self) -> Callable[..., Compiled]:
        return self._compilations.compile

    def _prepare(
        self, arguments: tuple[Argument, ...], copies: tuple[int, ...] = ()
    ) -> tuple[HostProgram, dict[str, LoadedKernel]]:
        device = next((a.device for a in arguments if isinstance(a, ArrayInfo)), None)
        if device is None:
            raise ArgumentError(
                "a call needs at least one array", where=self.__name__, hint="pass one: results are made on its device"
            )
        found = cuda.device_target(device)
        target = found if self._target is None else self._target.with_sms(found.sms)
        name = cuda.device_name(device)

        def describe(extents: Extents) -> tuple[ArgumentSpec, ...]:
            return gpu_specs(arguments, extents)

        before = self._compilations.count
        compiled = self._compile(describe, target, name, copies)
        reasons = compiled.lowered.notes[1:]
        self._signatures.note(arguments, compiled=self._compilations.count > before, reasons=reasons)
        if self._tune and (id(compiled), device) not in self._loaded:
            from mlirfuse.api.tuning import tune_first_call  # here, as few functions are tuned

            with self._compilations.lock, cuda.on_device(device):
                if tune_first_call(self, compiled.lowered, arguments):
                    self._compilations.forget(compiled)
            compiled = self._compile(describe, target, name, copies)
        key = (id(compiled), device)
        with self._compilations.lock:
            if key not in self._loaded:
                assemble_ahead(compiled.binaries.values())
                self._loaded[key] = {n: load(b, compiled.infos[n], device) for n, b in compiled.binaries.items()}
            return compiled.program, self._loaded[key]

    def _interpret(self, args: tuple[Any, ...], out: Any) -> Any:
        from mlirfuse.interpreter import run  # imported here, as the import is slow and only the interpreter needs it

        arrays = [readable(argument, name_of(self._names, i)) for i, argument in enumerate(args)]
        target = target_of(None)
        before = self._compilations.count
        compiled = self._compile(lambda extents: numpy_specs(arrays, extents, self._names), target)
        is_new, reasons = self._compilations.count > before, compiled.lowered.notes[1:]
        self._signatures.note_arrays(arrays, compiled=is_new, reasons=reasons)
        inputs = [a for a in arrays if isinstance(a, np.ndarray | int | float | np.number | np.bool_)]
        results = run(compiled.interpreted, compiled.program.name, inputs, progress=True)
        if out is not None:
            write_results(out, results, [a for a in arrays if isinstance(a, np.ndarray)])
            return out
        return compiled.program.pack(results)


@overload
def fuse(fn: Callable[_P, _R], /, **options: Unpack[Options]) -> Fused[_P, _R]: ...


@overload
def fuse(fn: None = None, /, **options: Unpack[Options]) -> Callable[[Callable[_P, _R]], Fused[_P, _R]]: ...


def fuse(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    target: str | Target | None = None,
    schedule: Schedule | Mapping[str, Schedule] | None = None,
    fast_math: bool = False,
    mix_order: MixOrder = "auto",
    grid_reduction: GridReductionKind = "auto",
    dynamic_products: bool = False,
    fusion: Fusion = "auto",
    tune: bool = False,
    dynamic_reductions: bool = False,
    **unknown: object,
) -> Any:
    """Makes a function over arrays run as fused GPU kernels; a decorator, with or without arguments.

    One compilation serves all leading extents above 1, which kernels are told when they run. Extents of 0 and 1 are
    compiled separately: empty results need no kernel, and reductions over no element follow NumPy. Where the function
    needs a leading extent as a number, it is compiled anew for each:

    - in `max` and `min` over leading dimensions; sums, products, means, variances, `any` and `all` stay as they are;
    - in reductions over leading dimensions other than the first ones in a row, such as `axis=1` or `axis=(0, 2)` of
      three dimensions, or that keep a dimension of dynamic extent (see `dynamic_reductions` for both);
    - in dimensions behind the first one that change their place in memory: the new last one, and others up to 128;
    - in what is reduced over leading dimensions and needed along these again, as statistics of columns that normalise
      them, for a few calls in which that is predicted to be much faster: one kernel may then hold a column on chip;
    - in matrix products (see `dynamic_products`), in slices, of all dimensions where slices of one array overlap, and
      where Python asks for the number, as in `if`, `range` and `int`. Arithmetic with `shape` is done at run time:
      `mf.sum(x, 0) / x.shape[0]` is one compilation.

    Results that are views of arguments, such as `x.T` and `x[1:]`, share their memory, as NumPy's do, and launch no
    kernel; `out` gets a copy, as do PyTorch where a stride would be negative, and callers of other frameworks (JAX).

    Args:
        fn: takes arrays and numbers and returns one array, or a tuple or list of them; a method too. It is called once
            a signature, on traced values, with functions of `mlirfuse` and operators. Other values that it reads, such
            as globals and attributes of `self`, are read then, and are constants of the compilation.
        target: a name of `mlirfuse.target.TARGETS`, from `sm_80` to `sm_121a`, or `interpret` to run NumPy arrays on
            the CPU, by the kernels that large arrays get; None is the architecture of the arrays' device.
        schedule: overrides the heuristics: the schedule of the only kernel, or one by kernel name.
        fast_math: leaves out roundings that NumPy would make between two operations in half precision, where the second
            computes in single precision anyway. Results differ in their last places from call-by-call evaluation.
            Subnormal numbers, which are kept otherwise, may become 0 (docs/architecture.md, "Numbers").
        mix_order: how to compile reductions over different dimensions of the same data, such as those of `dx` and `dw`
            in the backward function of a normalisation. `auto` compiles one kernel, which reads the data once, where
            dependences and the size of a row allow it, also across reshapes, and where the cost model does not prefer
            two for the known extents. `fused` requires one kernel, and raises a `PassError` at compile time that names
            the reason where one is impossible; `split` keeps one kernel for each. A function without such reductions
            compiles in the same way under each.
        grid_reduction: the second stage of a grid reduction, which adds up the partials of the blocks where a function
            reduces over leading dimensions. `grid_sync`: all blocks together, once all have arrived, in the same
            launch, which the device must hold as a whole. `last_block`: the last block. `second_kernel`: another
            launch. All give the same bits on every run. `atomics`: the last block, from sums to which all blocks add
            atomically; for float32 sums only, whose last bits then differ from run to run. `auto` is the fastest of the
            first three by the cost model. An explicit choice is an error in a function without grid reductions, and is
            ignored at a single row.
        dynamic_products: makes one kernel for all leading extents of matrix products too. By default the first call's
            are numbers, and of later ones several share a kernel where that is predicted to lose little.
        dynamic_reductions: reduces leading dimensions of any extent in one kernel too: for `max` and `min`, and, in a
            second kernel, where further dimensions are reduced. A kernel for each extent may be faster.
        fusion: `off` compiles a kernel an operation, as libraries without a compiler run one: to compare with, and to
            find what fusion changes. An operation is one call or operator of `fn`, such as `mf.var` or `*`, whatever
            it consists of. Views, such as transposes and `x[:, None]`, have no kernel. That of `mf.ones_like` and the
            like reads nothing, so its leading extents are compiled as numbers. `auto` fuses.
        tune: measures schedules on the first call of a signature, for `mlirfuse.api.tuning.FIRST_CALL_SECONDS` at most,
            and keeps the fastest on disk (`MLIRFUSE_RECORDS`); later processes use these at once. Only kernels without
            a record are measured, on random arrays like the call's. `mlirfuse tune` does the same ahead of calls, whose
            functions need no `tune` then.
        **unknown: unknown or renamed options: an error that gives the nearest or the new name.

    Raises:
        ArgumentError: an option does not exist; `fn` is no Python function, or has a parameter `out` or `stream`
            without a default; `schedule` is no schedule; `mix_order`, `grid_reduction` or `fusion` none of the values
            above; or `mix_order="fused"` is given with `fusion="off"`, or `tune` with `target="interpret"`.
        TargetError: the target is unknown.
    """
    check_names(unknown)
    others = (schedule, fast_math, mix_order, grid_reduction, dynamic_products, fusion, tune, dynamic_reductions)
    return Fused(fn, target, *others) if fn is not None else lambda function: Fused(function, target, *others)
