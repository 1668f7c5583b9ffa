"""Ids that follow from their causes."""

from hypothesis import given
from hypothesis import strategies as st

from cambist.core.domain import ids

CAUSES = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12), min_size=1, max_size=3)


@given(CAUSES)
def test_the_same_causes_give_the_same_id_which_is_one(causes: list[str]) -> None:
    made = ids.derived(ids.REFUND, *causes)
    assert made == ids.derived(ids.REFUND, *causes)
    assert ids.is_prefixed(ids.REFUND, made)
    assert (made[4 + 14], made[4 + 19] in "89ab") == ("8", True), "version 8 of the usual variant"


@given(CAUSES, CAUSES)
def test_different_causes_give_different_ids(one: list[str], other: list[str]) -> None:
    same = one == other
    assert (ids.derived(ids.REFUND, *one) == ids.derived(ids.REFUND, *other)) is same
    tails = {ids.derived(prefix, *one).removeprefix(prefix) for prefix in (ids.REFUND, ids.WITHDRAWAL)}
    assert len(tails) == 2, "what is of another kind shares no UUID"


def test_derived_id_sorts_before_every_id_made_later() -> None:
    """Otherwise a caller that lists everything newer than an id would see the derived one as new for ever."""
    early, late = "sub_019b76da-a800-7c21-a29f-6fbed82c07cd", "pay_019b76da-a801-7000-8000-000000000000"
    made = {ids.derived_after(ids.PAYMENT, early, bytes([number] * 32)) for number in range(256)}
    assert len(made) == 256
    assert all(ids.is_prefixed(ids.PAYMENT, each) and each < late and each[18] == "7" for each in made)


def test_derived_id_is_stable_over_versions() -> None:
    """A later version that derived it otherwise would send a second time what an earlier one sent."""
    assert ids.derived(ids.REFUND, "acc_1:live:key") == "ref_0667fa75-8890-8c35-b8e5-be1c8bfed455"
    earlier = "sub_019b76da-a800-7c21-a29f-6fbed82c07cd"
    assert ids.derived_after(ids.PAYMENT, earlier, bytes(range(16))) == "pay_019b76da-a800-7001-8203-040506070809"
