"""The shared selection rules, against answers worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forget_datasets.tokens import fold, holds, sure_words, words
from forget_eval.policies import Hit, best, holding, released, within_gap


@pytest.mark.parametrize(
    ("identifier", "text"),
    [
        ("alice@acme.io", "The parcel for alice@acme.io is back."),
        ("alice@acme.io", "Write to alice@acme.io."),
        ("alice@acme.io", "(alice@acme.io)"),
        ("alice@acme.io", "ALICE@ACME.IO: paid"),
        ("alice@acme.io", "客户alice@acme.io的订单"),
        ("alice@acme.io", "邮箱:alice@acme.io"),
        ("alice@acme.io", "メールはalice@acme.ioです"),
        ("alice@acme.io", "alice@acme.io에게 보냈다"),
        ("sk_live_a1b2", "The key is `sk_live_a1b2`, rotated in May."),
        ("Dana Wolf", "Dana Wolf's insurer called."),
        ("Dana Wolf", "The file of Dana\n  Wolf is closed."),
        ("482913", "コード482913です"),
        ("482913", "验证码为482913。"),
        ("482913", "確認番号４８２９１３を入力"),
        ("周慧敏", "周慧敏的病历"),
        ("周慧敏", "患者周慧敏对青霉素过敏"),
        ("佐伯遥香", "佐伯遥香さんの記録"),
        ("さくら", "さくらはもういない"),
        ("マリア", "マリアさん、マリア・ロペス"),
        ("สมชาย", "คุณสมชายอยู่ที่นี่"),
        ("José", "Jose\u0301 called"),
        ("ﾊﾞﾗﾄﾞ", "バラドさん"),
    ],
)
def test_a_text_holds_an_identifier(identifier: str, text: str) -> None:
    assert holds(identifier, text)


@pytest.mark.parametrize(
    ("identifier", "text"),
    [
        ("alice@acme.io", "alice@acme.io.uk"),
        ("alice@acme.io", "b.alice@acme.io"),
        ("alice@acme.io", "malice@acme.io"),
        ("alice@acme.io", "alice@acme.iota"),
        ("alice@acme.io", "alice@acme.io-archive"),
        ("alice@acme.io", "mailto:alice@acme.io"),
        ("alice@acme.io", "bob@acme.io"),
        ("sk_live_a1b2", "sk_live_a1b2c3"),
        ("sk_live_a1b2", "sk_live_a1b2_old"),
        ("Dana Wolf", "Dana Wolfe"),
        ("Dana Wolf", "Adana Wolf"),
        ("482913", "4829131"),
        ("482913", "コード1482913です"),
        ("マリア", "マリアンヌ"),
        ("김민수", "김민수진"),
        ("हिन्द", "हिन्दी"),
        ("Jose", "Jose\u0301 called"),
        ("", "anything"),
        ("   ", "anything"),
    ],
)
def test_a_text_does_not_hold_a_part_of_a_longer_token(identifier: str, text: str) -> None:
    assert not holds(identifier, text)


def test_a_later_place_counts_when_an_earlier_one_is_part_of_a_longer_token() -> None:
    assert holds("abc1", "key abc12 and abc1")
    assert holds("aa", "aaa aa")


def test_full_width_punctuation_separates_where_its_plain_form_connects() -> None:
    assert fold("编号：７７３１") == "编号：7731"
    assert holds("7731", "id：7731")
    assert not holds("7731", "id:7731")


def test_holding_gives_positions() -> None:
    texts = ["bob@acme.io", "alice@acme.io", "alice@acme.io.uk", "for alice@acme.io"]
    assert holding("alice@acme.io", texts) == [1, 3]
    assert holding("carol@acme.io", texts) == []


@given(st.text(max_size=20), st.text(max_size=20))
def test_a_text_holds_itself_and_is_found_between_spaces(identifier: str, other: str) -> None:
    if fold(identifier):
        assert holds(identifier, identifier)
        assert holds(identifier, f"{other} {identifier} {other}")


def test_folding_knows_more_of_case_than_lower_does() -> None:
    assert "STRASSE".lower() != "straße".lower()
    assert fold("STRASSE") == fold("straße") == "strasse"
    assert holds("Große Straße 5", "The parcel goes to GROSSE STRASSE 5.")


@given(st.text(max_size=12))
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(
    st.text(alphabet="ab1.@ 周慧敏さくらマリ김é", max_size=6),
    st.text(alphabet="ab1.@ 周慧敏さくらマリ김é", max_size=16),
)
def test_every_holder_has_the_sure_words(identifier: str, text: str) -> None:
    if holds(identifier, text):
        assert set(sure_words(identifier)) <= set(words(text))


def test_words_of_scripts_without_spaces_are_pairs() -> None:
    assert words("周慧敏住在Berlin。") == ["周慧", "慧敏", "敏住", "住在", "berlin"]
    assert words("私はマリア") == ["私", "は", "マリ", "リア"]
    assert words("sk_live_A1 paid 3.50") == ["sk", "live", "a1", "paid", "3", "50"]
    assert words("…") == []


@pytest.mark.parametrize(
    ("scores", "kept"),
    [
        ([], 0),
        ([0.4], 1),
        ([0.8, 0.3, 0.2], 1),
        ([0.8, 0.7, 0.2, 0.1], 2),
        ([0.9, 0.7, 0.5], 1),  # two gaps of 0.2: the first
        ([0.80, 0.77, 0.76, 0.75], 3),  # no gap of 0.05: 95% of 0.80 is 0.76
        ([0.80, 0.74, 0.73], 1),  # 0.06 is enough
        ([0.5, 0.5, 0.5], 3),
        ([0.0, 0.0, -0.01], 2),
        ([-0.10, -0.102, -0.11], 2),  # 5% below -0.10 is -0.105
    ],
)
def test_the_widest_gap_cuts(scores: list[float], kept: int) -> None:
    assert within_gap(scores) == kept


def test_the_gap_has_a_least_width_on_the_scale_of_the_system() -> None:
    scores = [0.80, 0.74, 0.73]
    assert within_gap(scores, minimum=0.1) == 1  # 95% of 0.80 is 0.76
    assert within_gap([0.80, 0.78, 0.70], minimum=0.1) == 2


def test_rising_scores_are_refused() -> None:
    with pytest.raises(ValueError, match="falling order"):
        within_gap([0.1, 0.2])


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30))
def test_a_release_takes_at_least_the_best(scores: list[float]) -> None:
    assert 1 <= within_gap(sorted(scores, reverse=True)) <= len(scores)


def test_released_and_best_come_from_the_top() -> None:
    hits = [Hit("a", "one", 0.9), Hit("b", "two", 0.85), Hit("c", "three", 0.2)]
    assert released(hits) == hits[:2]
    assert best(hits) == hits[0]
    assert best([]) is None
    assert released([]) == []
