# The part of the timeline that is drawn, in ns: blocks of keys in full swing, then the end of a tile.
WINDOW_10 := 16000 24000
