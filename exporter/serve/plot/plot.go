// Package plot draws the drawings of reports as figures of HTML with inline SVG: no script, no style of their own, no
// external resource. Colors and fonts are those of the page's style sheet, by the classes plot, grid, c0 to c7, points and
// marks.
//
// Texts are escaped, values out of range are left out, and the output is the same for the same drawing.
package plot

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"

	"oneway.example/exporter/probe/report"
)

// The drawing's size and the margins of its axes, in units that are pixels of a width of 480.
const (
	width, height            = 480, 270
	left, right, top, bottom = 52.0, width - 24.0, 28.0, height - 40.0
	colors                   = 8
	// largest is the largest value that is drawn; smaller ones than least are 0.
	largest, least = 1e21, 1e-12
)

// Figure appends a figure. Its id must be unique in the page, and safe in an attribute.
func Figure(b []byte, id string, d *report.Drawing) []byte {
	x, y := newScale(d.X, left, right), newScale(d.Y, bottom, top)
	for i := range d.Series {
		each(&d.Series[i], &x, &y, func(vx, vy float64) { x.include(vx); y.include(vy) })
	}
	x.close(false)
	y.close(true)
	b = fmt.Appendf(b, "<figure>\n<figcaption id=\"%s\">%s</figcaption>\n", id, text(d.Title))
	b = fmt.Appendf(b, "<svg class=\"plot\" viewBox=\"0 0 %d %d\" role=\"img\" aria-labelledby=\"%s\" aria-describedby=\"%s-text\">\n", width, height, id, id)
	b = fmt.Appendf(b, "<desc id=\"%s-text\">%s</desc>\n", id, text(describe(d, &x, &y)))
	b = axes(b, &x, &y)
	color := colorsOf(d.Series)
	for i := range d.Series {
		b = draw(b, &d.Series[i], color[i], &x, &y)
	}
	b = append(b, "</svg>\n<ul class=\"legend\">\n"...)
	for i := range d.Series {
		s := &d.Series[i]
		b = fmt.Appendf(b, "<li><svg class=\"plot key\" viewBox=\"0 0 28 12\" aria-hidden=\"true\">%s</svg>%s</li>\n", key(s.Form, color[i]), text(s.Name))
	}
	return append(b, "</ul>\n</figure>\n"...)
}

// colorsOf has the color of each series: marks are counted apart, so that those of the nth line have its color.
func colorsOf(series []report.Series) []int {
	all, lines, marks := make([]int, len(series)), 0, 0
	for i := range series {
		n := &lines
		if series[i].Form == report.AsMarks {
			n = &marks
		}
		all[i] = *n % colors
		*n++
	}
	return all
}

// text escapes a text; those of a report have no control characters.
func text(s string) string { return html.EscapeString(s) }

// each calls f for the points that can be drawn.
func each(s *report.Series, x, y *scale, f func(x, y float64)) {
	for i := range min(len(s.X), len(s.Y)) {
		if x.shows(s.X[i]) && y.shows(s.Y[i]) {
			f(s.X[i], s.Y[i])
		}
	}
}

// describe is the drawing in words.
func describe(d *report.Drawing, x, y *scale) string {
	var all []string
	for i := range d.Series {
		s := &d.Series[i]
		n, low, high := 0, math.Inf(1), math.Inf(-1)
		each(s, x, y, func(_, v float64) { n++; low = min(low, v); high = max(high, v) })
		if n == 0 {
			all = append(all, s.Name+": no values")
			continue
		}
		all = append(all, fmt.Sprintf("%s: %s to %s", s.Name, y.axis.Unit.Format(low), y.axis.Unit.Format(high)))
	}
	return strings.Join(all, "; ") + "."
}

// axes draws the grid, its values and the names of the axes.
func axes(b []byte, x, y *scale) []byte {
	b = append(b, `<path class="grid" d="`...)
	for _, v := range y.ticks {
		b = fmt.Appendf(b, "M%.1f %.1fH%.1f", left, y.at(v), right)
	}
	for _, v := range x.ticks {
		b = fmt.Appendf(b, "M%.1f %.1fv4", x.at(v), bottom)
	}
	b = append(b, "\"/>\n"...)
	for _, v := range y.ticks {
		b = fmt.Appendf(b, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", left-6, y.at(v)+4.5, text(y.label(v)))
	}
	for _, v := range x.ticks {
		b = fmt.Appendf(b, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n", x.at(v), bottom+18, text(x.label(v)))
	}
	b = fmt.Appendf(b, "<text x=\"4\" y=\"13\">%s</text>\n", text(y.name()))
	return fmt.Appendf(b, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"end\">%s</text>\n", right, height-4, text(x.name()))
}

// draw draws a series.
func draw(b []byte, s *report.Series, color int, x, y *scale) []byte {
	type at struct{ x, y float64 }
	var points []at
	each(s, x, y, func(vx, vy float64) {
		if p := (at{pixel(x.at(vx)), pixel(y.at(vy))}); len(points) == 0 || p != points[len(points)-1] {
			points = append(points, p)
		}
	})
	if len(points) == 0 {
		return b
	}
	begin := func(class string) { b = fmt.Appendf(b, "<path class=\"c%d%s\" d=\"", color, class) }
	number := func(command byte, v float64) {
		b = strconv.AppendFloat(append(b, command), v, 'f', -1, 64)
	}
	if s.Form == report.AsMarks {
		begin(" marks")
		for _, p := range points {
			number('M', p.x-3)
			number(' ', p.y-3)
			b = append(b, "l6 6m0-6l-6 6"...)
		}
		return append(b, "\"/>\n"...)
	}
	begin("")
	for i, p := range points {
		switch {
		case i == 0:
			number('M', p.x)
			number(' ', p.y)
		case s.Form == report.AsSteps:
			number('H', p.x)
			number('V', p.y)
		default:
			number('L', p.x)
			number(' ', p.y)
		}
	}
	b = append(b, "\"/>\n"...)
	if s.Form != report.AsPoints && len(points) > 1 {
		return b
	}
	begin(" points")
	for _, p := range points {
		number('M', p.x)
		number(' ', p.y)
		b = append(b, "h0"...)
	}
	return append(b, "\"/>\n"...)
}

// pixel rounds a position: finer ones cannot be seen.
func pixel(v float64) float64 { return math.Round(v*10) / 10 }

// key is the sign of a series in the legend.
func key(f report.Form, color int) string {
	switch f { //nolint:exhaustive // the others are lines
	case report.AsMarks:
		return fmt.Sprintf(`<path class="c%d marks" d="M10 2l8 8m0-8l-8 8"/>`, color)
	case report.AsPoints:
		return fmt.Sprintf(`<path class="c%d" d="M1 6H27"/><path class="c%d points" d="M14 6h0"/>`, color, color)
	}
	return fmt.Sprintf(`<path class="c%d" d="M1 6H27"/>`, color)
}
