package ansi

import (
	"strconv"
	"strings"
)

// colour is 1 plus the index of one of 16 colours, or 0 for the default colour.
type colour uint8

// style holds the graphic attributes of text.
type style struct {
	text, back                                      colour
	bold, faint, italic, underline, inverse, strike bool
	// code marks the code point of a character that would be invisible.
	code bool
}

// wrap writes HTML in a span with the classes of the style.
func (s style) wrap(out *strings.Builder, html string) {
	classes := s.classes()
	if html == "" || classes == "" {
		out.WriteString(html)
		return
	}
	out.WriteString(`<span class="` + classes + `">` + html + `</span>`)
}

// classes returns the classes of the style.
func (s style) classes() string {
	var names []string
	add := func(is bool, name string) {
		if is {
			names = append(names, name)
		}
	}
	number := func(c colour) string { return strconv.Itoa(int(c) - 1) }
	switch {
	case s.inverse && s.text != 0:
		names = append(names, "s"+number(s.text))
	case s.inverse:
		names = append(names, "s")
	default:
		if s.text != 0 {
			names = append(names, "c"+number(s.text))
		}
		if s.back != 0 {
			names = append(names, "b"+number(s.back))
		}
	}
	add(s.bold, "bold")
	add(s.faint, "faint")
	add(s.italic, "italic")
	add(s.underline, "underline")
	add(s.strike, "strike")
	add(s.code, "code")
	return strings.Join(names, " ")
}

// apply changes the style by the parameters of an SGR (select graphic rendition) sequence.
func (s *style) apply(parameters string) {
	fields := strings.Split(parameters, ";")
	for len(fields) > 0 {
		first, sub, hasSub := strings.Cut(fields[0], ":")
		fields = fields[1:]
		n := number(first)
		switch {
		case n == 0:
			*s = style{}
		case n == 1:
			s.bold = true
		case n == 2:
			s.faint = true
		case n == 3:
			s.italic = true
		case n == 4:
			s.underline = !hasSub || number(sub) != 0
		case n == 7:
			s.inverse = true
		case n == 9:
			s.strike = true
		case n == 21:
			s.underline = true
		case n == 22:
			s.bold, s.faint = false, false
		case n == 23:
			s.italic = false
		case n == 24:
			s.underline = false
		case n == 27:
			s.inverse = false
		case n == 29:
			s.strike = false
		case n >= 30 && n <= 37:
			s.text = colour(n - 30 + 1)
		case n >= 40 && n <= 47:
			s.back = colour(n - 40 + 1)
		case n >= 90 && n <= 97:
			s.text = colour(n - 90 + 9)
		case n >= 100 && n <= 107:
			s.back = colour(n - 100 + 9)
		case n == 39:
			s.text = 0
		case n == 49:
			s.back = 0
		case n == 38 || n == 48 || n == 58:
			var c colour
			if hasSub {
				c, _ = chosenColour(strings.Split(sub, ":"), true)
			} else {
				var used int
				c, used = chosenColour(fields, false)
				fields = fields[used:]
			}
			if n == 38 {
				s.text = c
			} else if n == 48 {
				s.back = c
			}
		}
	}
}

// number parses a parameter. An empty parameter is 0; an invalid or large one is 255, which has no meaning.
func number(text string) int {
	if text == "" {
		return 0
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 0 && n <= 255 {
		return n
	}
	return 255
}

// chosenColour returns the colour that parameters select: 5 and an index, or 2 and red, green and blue. With colons, a
// colour space may precede red. It also returns the number of parameters used.
func chosenColour(parameters []string, colons bool) (colour, int) {
	if len(parameters) == 0 {
		return 0, 0
	}
	switch number(parameters[0]) {
	case 5:
		if len(parameters) >= 2 {
			return indexed(number(parameters[1])), 2
		}
	case 2:
		from := 1
		if colons && len(parameters) >= 5 {
			from = 2
		}
		if len(parameters) >= from+3 {
			return nearest(number(parameters[from]), number(parameters[from+1]), number(parameters[from+2])), from + 3
		}
	}
	return 0, len(parameters)
}

// indexed returns the palette colour for one of 256 colours: 16 named ones, a 6×6×6 cube and 24 greys.
func indexed(n int) colour {
	switch {
	case n < 16:
		return colour(n + 1)
	case n < 232:
		level := func(k int) int {
			if k == 0 {
				return 0
			}
			return 55 + 40*k
		}
		n -= 16
		return nearest(level(n/36), level(n/6%6), level(n%6))
	}
	grey := 8 + 10*(n-232)
	return nearest(grey, grey, grey)
}

// palette holds the 16 colours as xterm shows them.
var palette = [16][3]int{
	{0, 0, 0}, {205, 0, 0}, {0, 205, 0}, {205, 205, 0}, {0, 0, 238}, {205, 0, 205}, {0, 205, 205}, {229, 229, 229},
	{127, 127, 127}, {255, 0, 0}, {0, 255, 0}, {255, 255, 0}, {92, 92, 255}, {255, 0, 255}, {0, 255, 255}, {255, 255, 255},
}

// nearest returns the palette colour that looks most like a given one. Each component is 0 to 255.
func nearest(red, green, blue int) colour {
	best, least := 0, -1
	for i, p := range palette {
		r, g, b := p[0]-red, p[1]-green, p[2]-blue
		if d := 2*r*r + 4*g*g + 3*b*b; least < 0 || d < least { // the eye is most sensitive to green
			best, least = i, d
		}
	}
	return colour(best + 1)
}
