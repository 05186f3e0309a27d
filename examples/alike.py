"""Whether two attentions train alike, as notes/training.md says. For train.py; on plain numbers, without PyTorch."""

LARGEST_ERROR = 2.0**-9  # four times what rounding one number to fp16 changes at most


def gradients_are_right(errors):
    """errors: the relative ones of the gradients, compared with those of an attention in fp64."""
    return all(error <= LARGEST_ERROR for error in errors)  # false for NaN


def end_of(losses):
    """The mean of the last quarter."""
    last = losses[-(len(losses) // 4 or 1):]
    return sum(last) / len(last)


def curves_are_alike(trained, peer):
    """trained: for each seed the curves of all contestants. Whether ours end where the peer's do: no farther from it,
    with the same seed, than the peer's runs with different seeds from each other. And both distances."""
    ends = [end_of(curves[peer]) for curves in trained]
    spread = max(ends) - min(ends)
    apart = [abs(end_of(curves["ours"]) - end) for curves, end in zip(trained, ends)]
    fell = all(end_of(curves["ours"]) < curves["ours"][0] for curves in trained)
    return all(distance <= spread for distance in apart) and fell, max(apart), spread


def steps_are_alike(trained, peer):
    """For a few steps, which are no curve: whether each loss is the peer's."""
    return all(abs(ours - theirs) <= LARGEST_ERROR * theirs
               for curves in trained for ours, theirs in zip(curves["ours"], curves[peer], strict=True))
