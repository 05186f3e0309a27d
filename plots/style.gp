# The look of every plot: Okabe and Ito's colours, which colour-blind readers tell apart and which keep their order in
# grey print; letters large enough for a phone; no frame, a light grid.
blue = "#0072b2"
orange = "#d55e00"
green = "#009e73"
purple = "#cc79a7"
sky = "#56b4e9"
amber = "#e69f00"
yellow = "#f0e442"
ink = "#222222"
grey = "#666666"
faint = "#aaaaaa"
light = "#dddddd"

set border 3 linecolor rgb grey linewidth 1
set tics nomirror scale 0.6 textcolor rgb ink
set grid linecolor rgb light linewidth 1 dashtype 1
set xlabel textcolor rgb grey
set ylabel textcolor rgb grey

terminal(width, height) = sprintf("set terminal svg enhanced fontscale 1.2 background rgb 'white' " . \
                                 "font 'sans-serif,15' size %d,%d", width, height)
dot = 0.75 # how large a point is
