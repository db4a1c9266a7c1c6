"""bpe_decode: the bytes of each token, glued together."""

import torch

from autograder.suite import (
    assert_close,
    assert_close_in_turn,
    assert_refused,
    call_twice,
    points,
    randint,
)

LOW = [(108, 111), (256, 119), (32, 257)]  # lo, low, space low


def _bytes(data):
    return torch.tensor(list(data), dtype=torch.uint8)


@points(1.5)
def test_a_merge_is_its_left_part_and_then_its_right_part(student):
    """257 is 256·w and 256 is l·o; 258 has a space in front."""
    answer = student.bpe_decode(torch.tensor([257, 258, 101, 114, 256]), LOW)
    assert_close(answer, _bytes(b"low lowerlo"), same_dtype=False)


@points(1)
def test_a_token_need_not_be_text(student):
    """195 alone is half of é, and 0 and 255 are bytes like the others."""
    answer = student.bpe_decode(torch.tensor([195, 0, 255, 256]), [(255, 195)])
    assert_close(answer, _bytes([195, 0, 255, 255, 195]), same_dtype=False)


@points(1.5)
def test_any_tokens_have_bytes(student, reference):
    """Sixty ids at random, such as encoding a text would never choose: 108 111 beside 256."""
    ids = torch.cat([randint(0, 259, (40,)), randint(254, 259, (20,))])
    assert_close(
        call_twice(student.bpe_decode, ids, LOW),
        reference.bpe_decode(ids, LOW),
        same_dtype=False,
    )
    assert_close_in_turn(
        student.bpe_decode,
        reference.bpe_decode,
        *(ids, LOW),
        others=(ids.flip(0), [(108, 111), (256, 120), (33, 257)]),
        same_dtype=False,
    )


@points(0.5)
def test_no_tokens_are_no_bytes(student):
    """uint8 [0]; and one token of one byte is uint8 [1]."""
    assert_close(student.bpe_decode(torch.tensor([65]), []), _bytes(b"A"))
    assert_close(
        student.bpe_decode(torch.zeros(0, dtype=torch.int64), LOW), _bytes(b"")
    )


@points(0.5)
def test_ids_outside_the_vocabulary_are_refused(student):
    """With three merges there are 259 ids, 0 to 258. Neither 259 nor -1 is one of them."""
    assert_refused(student.bpe_decode, torch.tensor([65, 259]), LOW, sizes=(259,))
    assert_refused(student.bpe_decode, torch.tensor([-1, 65]), LOW, sizes=(-1, 259))
