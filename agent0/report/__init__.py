"""Part of the rim: what a run came to, as a picture and as one HTML file that opens from disk. Needs matplotlib."""

from agent0.report.curve import curve_svg, draw_curve
from agent0.report.page import page

__all__ = ["curve_svg", "draw_curve", "page"]
