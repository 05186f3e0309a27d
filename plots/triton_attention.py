"""Attention's forward pass as one writes it in Triton: a program computes a tile of rows, with an online softmax over
tiles of keys. TMA moves the tiles, by Triton's tensor descriptors; Triton's compiler does all else. triton_peer.py
calls it. Q, K, V and O are [batch * heads * seqlen][head_dim]."""
import triton
import triton.language as tl


@triton.jit
def add_key_tile(state, q, k, v, rows, keys, scale, HIDE: tl.constexpr):
    """The state (sums of values, sum of weights, maximum of each row) with one more tile of keys."""
    sums, total, largest = state
    scores = tl.dot(q, k.T) * scale
    if HIDE:
        scores = tl.where(rows[:, None] >= keys[None, :], scores, float("-inf"))
    higher = tl.maximum(largest, tl.max(scores, 1))
    weights = tl.exp2(scores - higher[:, None])
    shrink = tl.exp2(largest - higher)
    sums = tl.dot(weights.to(v.dtype), v, sums * shrink[:, None])
    return sums, total * shrink + tl.sum(weights, 1), higher


@triton.jit
def forward(q_tiles, k_tiles, v_tiles, o_tiles, seqlen, scale, CAUSAL: tl.constexpr, HEAD_DIM: tl.constexpr,
            ROWS: tl.constexpr, KEYS: tl.constexpr):
    """scale: of the scores, times log2(e). seqlen is a multiple of ROWS, and ROWS of KEYS."""
    tile = tl.program_id(0)
    if CAUSAL:  # the longest rows first
        tile = tl.num_programs(0) - 1 - tile
    first = tile * ROWS
    head = tl.program_id(1) * seqlen
    q = q_tiles.load([head + first, 0])
    rows = first + tl.arange(0, ROWS)
    sums = tl.zeros([ROWS, HEAD_DIM], tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    largest = tl.full([ROWS], float("-inf"), tl.float32)
    whole = first if CAUSAL else seqlen  # keys that no row's mask hides
    for key in tl.range(0, whole, KEYS):
        k, v = k_tiles.load([head + key, 0]), v_tiles.load([head + key, 0])
        sums, total, largest = add_key_tile((sums, total, largest), q, k, v, rows, rows, scale, False)
    if CAUSAL:
        for key in tl.range(first, first + ROWS, KEYS):
            k, v = k_tiles.load([head + key, 0]), v_tiles.load([head + key, 0])
            keys = key + tl.arange(0, KEYS)
            sums, total, largest = add_key_tile((sums, total, largest), q, k, v, rows, keys, scale, True)
    o_tiles.store([head + first, 0], (sums / total[:, None]).to(o_tiles.dtype))
