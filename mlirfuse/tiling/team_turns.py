"""Emits how teams of consumers take turns at the tensor cores: while one team's products run, others finish tiles."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, memref

from mlirfuse.dialect.mbarrier_arrive import mbarrier_arrive
from mlirfuse.dialect.mbarrier_init import mbarrier_init
from mlirfuse.dialect.mbarrier_wait import mbarrier_wait


@dataclass(frozen=True)
class TeamTurns:
    """Whose products may be started.

    A turn ends when the team has seen all its stages full. So nobody waits for a stage that is two rounds of the ring
    ahead, of which a barrier's parity could not tell.

    Attributes:
        barriers: one a team, whose phase ends when its turn comes.
        teams: how many take turns.
        warpgroups: of a team.
    """

    barriers: ir.Value
    teams: int
    warpgroups: int

    def first_parity(self, team: ir.Value) -> ir.Value:
        """Parity (i32) with which a team waits for its first turn; the first team passes a fresh barrier."""
        is_first = arith.cmpi(arith.CmpIPredicate.eq, team, arith.constant(ir.IndexType.get(), 0))
        return arith.extui(ir.IntegerType.get_signless(32), is_first)

    def await_turn(self, team: ir.Value, parity: ir.Value) -> ir.Value:
        """Waits for a team's turn; the parity of its next one."""
        mbarrier_wait(self.barriers, team, parity)
        return arith.xori(parity, arith.constant(ir.IntegerType.get_signless(32), 1))

    def pass_on(self, team: ir.Value) -> None:
        """The next team's turn begins."""
        index = ir.IndexType.get()
        following = arith.addi(team, arith.constant(index, 1))
        mbarrier_arrive(self.barriers, arith.remui(following, arith.constant(index, self.teams)), self.warpgroups)


def allocate_turns(teams: int, warpgroups: int) -> TeamTurns:
    """Allocates the barriers in shared memory and initialises them; a barrier of the block must follow."""
    space, i64 = ir.Attribute.parse("#gpu.address_space<workgroup>"), ir.IntegerType.get_signless(64)
    type_ = ir.MemRefType.get([teams], i64, memory_space=space)
    barriers = memref.AllocOp(type_, [], [], alignment=ir.IntegerAttr.get(i64, 16)).result
    mbarrier_init(barriers, warpgroups)
    return TeamTurns(barriers, teams, warpgroups)
