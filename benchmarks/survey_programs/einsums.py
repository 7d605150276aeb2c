"""Einsums of real models, chosen before any was tuned for: equation, extents of its indices, and where it is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from survey_programs.program import Program, numbers

THUNDER = (
    ("bij,jk->bik", "b=2 i=16 j=16 k=16"),
    ("bij,jk->bik", "b=2 i=16 j=16 k=16 j0=1"),
    ("bij,jk->bik", "b=2 i=16 j=16 k=16 j1=1"),
    ("bijk,bklj->bli", "b=2 i=8 j=16 k=16 l=8"),
    ("bijk,bklj->bli", "b=2 i=8 j=16 k=16 l=8 k0=1"),
    ("bijk,bklj->bli", "b=2 i=8 j=16 k=16 l=8 k1=1"),
)
"""The six cases of lightning-thunder's issue 193: two equations, each plain and with an operand that broadcasts; `j0`
is the extent of j in operand 0, where it has another one."""

LARGER = (
    ("bijk,bklj->bli", "b=4 i=8 j=512 k=512 l=8"),
    ("bij,jk->bik", "b=2 i=128 j=128 k=128"),
    ("bij,jk->bik", "b=2 i=512 j=512 k=512"),
)
"""The same equations at larger sizes."""

MODELS = {
    "attention": (
        ("bqhd,bkhd->bhqk", "b=4 q=1024 k=1024 h=16 d=64"),
        ("bhqk,bkhd->bqhd", "b=4 q=1024 k=1024 h=16 d=64"),
        ("bhqk,bhdk->bhqd", "b=4 q=512 k=512 h=16 d=128"),
        ("bkgqd,bksd->bkgqs", "b=8 k=8 g=4 q=1 s=4096 d=128"),
        ("bkgqs,bksd->bkgqd", "b=8 k=8 g=4 q=1 s=4096 d=128"),
        ("bshd,hde->bse", "b=4 s=1024 h=16 d=64 e=1024"),
        ("bse,hde->bhsd", "b=4 s=1024 h=16 d=64 e=1024"),
        ("bse,ehd->bshd", "b=8 s=512 h=32 d=128 e=4096"),
        ("bse,bshd->ehd", "b=4 s=1024 h=16 d=64 e=1024"),
        ("bhsd,hde->bse", "b=8 s=512 h=16 d=64 e=1024"),
        ("bqhd,qkd->bhqk", "b=4 q=512 k=512 h=16 d=64"),
        ("bhck,bhcv->bhkv", "b=8 h=16 c=2048 k=64 v=64"),
        ("bhwqd,bhwkd->bhwqk", "b=8 h=12 w=64 q=49 k=49 d=32"),
    ),
    "bilinear": (
        ("bi,oij,bj->bo", "b=512 i=128 o=64 j=128"),
        ("bsi,ij,btj->bst", "b=16 s=256 t=256 i=512 j=512"),
        ("bld,dn,bln->bd", "b=8 l=1024 d=1024 n=16"),
        ("bk,kr,nr->bn", "b=4096 k=4096 r=16 n=4096"),
        ("bsk,rk,nr->bsn", "b=4 s=1024 k=4096 r=64 n=1024"),
    ),
    "experts": (
        ("gsec,gsm->egcm", "g=8 s=512 e=16 c=64 m=1024"),
        ("gsec,egcm->gsm", "g=8 s=512 e=16 c=64 m=1024"),
        ("ecm,emh->ech", "e=16 c=512 m=1024 h=2048"),
        ("egcm,emh->egch", "e=16 g=8 c=64 m=1024 h=2048"),
        ("te,etd->td", "t=4096 e=8 d=1024"),
    ),
    "state space": (
        ("bln,bdn->bld", "b=8 l=1024 n=16 d=1024"),
        ("bhpn,bn->bhp", "b=64 h=32 p=64 n=128"),
        ("bclhn,bcshn->bhcls", "b=2 c=16 l=128 s=128 h=16 n=64"),
        ("bhcls,bcshp->bclhp", "b=2 h=16 c=16 l=128 s=128 p=64"),
        ("hn,bhn,hn->bh", "b=256 h=1024 n=64"),
    ),
    "tensors": (
        ("aib,bjc,ckd->aijkd", "a=32 i=16 b=32 j=16 c=32 k=16 d=32"),
        ("xaib,yajb->xiyj", "x=64 a=16 i=32 b=16 y=64 j=32"),
        ("efab,ijab->efij", "e=48 f=48 a=48 b=48 i=16 j=16"),
        ("imae,mebj->iajb", "i=16 m=16 a=40 e=40 b=40 j=16"),
        ("mbej,imae->iajb", "i=24 m=24 a=32 e=32 b=32 j=24"),
        ("pi,pqrs->iqrs", "p=48 i=16 q=48 r=48 s=48"),
        ("qj,iqrs->ijrs", "q=48 j=16 i=16 r=48 s=48"),
        ("pqr,prs->qs", "p=256 q=64 r=128 s=64"),
        ("abc,abd->cd", "a=64 b=1024 c=128 d=128"),
        ("ixyz,zl->ixyl", "i=16 x=32 y=32 z=32 l=48"),
        ("ixyz,xl->ilyz", "i=16 x=32 y=32 z=32 l=48"),
    ),
    "small": (
        ("ki,kj->ij", "k=131072 i=64 j=64"),
        ("bij,bji->b", "b=4096 i=64 j=64"),
        ("bii->b", "b=4096 i=128"),
        ("ij,ij->", "i=4096 j=4096"),
        ("ij,j->i", "i=8192 j=8192"),
        ("i,ij->j", "i=8192 j=8192"),
        ("i,j->ij", "i=8192 j=4096"),
        ("bi,bj->bij", "b=512 i=128 j=256"),
        ("bi,bi->b", "b=16384 i=1024"),
        ("i,bij,j->b", "b=512 i=128 j=256"),
    ),
    "sums": (
        ("bsd->d", "b=16 s=1024 d=1024"),
        ("bsd->bd", "b=64 s=256 d=1024"),
        ("bhsd->bshd", "b=8 h=16 s=1024 d=64"),
        ("abcd->dcba", "a=64 b=48 c=64 d=80"),
        ("bshd,bshd->bsh", "b=8 s=1024 h=16 d=64"),
        ("bchw,c->bchw", "b=32 c=256 h=28 w=28"),
    ),
}


def programs() -> list[Program]:
    """All of them, in bfloat16 and in float32."""
    return [*_programs()]


def _programs() -> Iterator[Program]:
    for dtype in ("bf16", "f32"):
        for equation, sizes in (*THUNDER, *LARGER):
            yield _program("einsum thunder", equation, sizes, dtype)
        for domain, entries in MODELS.items():
            for equation, sizes in entries:
                yield _program(f"einsum {domain}", equation, sizes, dtype)


def _program(domain: str, equation: str, sizes: str, dtype: str) -> Program:
    extents = numbers(sizes)
    inputs = equation.split("->")[0].split(",")
    shapes = ([str(extents.get(f"{i}{n}", i)) for i in term] for n, term in enumerate(inputs))
    text = " ".join(f"x{n}:{dtype}[{','.join(shape)}]" for n, shape in enumerate(shapes))
    indices = sorted(set(equation) & set(extents))
    flops = "*".join(["2", *indices]) if len(inputs) == 2 and set(indices) - set(equation.split("->")[1]) else ""
    return Program(domain, _function(equation), text, extents, flops=flops, label=f"{equation} {dtype}")


def _function(equation: str) -> Callable[..., Any]:
    def einsum(xp: Any, *arrays: Any) -> Any:
        return xp.einsum(equation, *arrays)

    return einsum
