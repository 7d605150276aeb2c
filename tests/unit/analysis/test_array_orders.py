"""Orders in which the arrays of a contraction lie."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mlirfuse.analysis.contractions.array_orders import ArrayOrders, array_orders


def orders(equation: str) -> set[str]:
    """The equations of the other orders; a letter is a dimension, `.` an array that stays."""
    left, right, result = equation.replace("->", ",").split(",")
    found = array_orders(*(tuple(map(ord, term)) for term in (left, right, result)))

    def text(dims: tuple[int, ...] | None) -> str:
        return "." if dims is None else "".join(map(chr, dims))

    return {f"{text(o.operands[0])},{text(o.operands[1])}->{text(o.result)}" for o in found}


def test_products_of_matrices_stay() -> None:
    assert orders("mk,kn->mn") == orders("km,nk->nm") == orders("bmk,bnk->bmn") == set()


def test_summed_dimensions_are_in_the_order_of_either_operand() -> None:
    found = orders("bijk,bklj->bli")
    assert {".,bljk->.", "bikj,.->."} <= found
    assert "bikj,bljk->." not in found


def test_dimensions_of_one_role_become_neighbours() -> None:
    assert orders("xaib,yajb->xiyj") == {"xiab,yjab->.", "xiab,.->.", ".,yjab->."}


def test_copies_keep_the_last_dimension_where_it_is_the_last_summed_one() -> None:
    assert {"xiab,.->.", "xiba,.->.", "baxi,.->."} <= orders("xaib,ybja->xiyj")
    assert "abxi,.->." not in orders("xaib,ybja->xiyj")


def test_a_result_is_copied_where_its_own_order_keeps_dimensions_apart() -> None:
    assert orders("bse,hde->bhsd") == {".,.->bshd"}
    assert orders("gsec,gsm->egcm") == {".,.->gecm"}
    assert {".,.->iabj", "iame,mejb->.", "iame,.->iabj"} <= orders("imae,mebj->iajb")


@given(st.permutations("abmnopkl"), st.data())
def test_orders_are_permutations_and_merge_what_copies_move(letters: list[str], data: st.DataObject) -> None:
    batch, m, n, k = (letters[i : i + 2] for i in (0, 2, 4, 6))
    arrays = [
        tuple(map(ord, data.draw(st.permutations([*x, *y, *z]))))
        for x, y, z in ((batch, m, k), (batch, n, k), (batch, m, n))
    ]
    for found in array_orders(*arrays):
        assert found != ArrayOrders((None, None))
        for own, new in zip(arrays, (*found.operands, found.result), strict=True):
            assert new is None or (sorted(new) == sorted(own) and new != own)
