package structs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MaxDepth bounds the nesting of data. Protocol buffers cannot be read from some thousand levels on, and a run must not discover
// that in its history.
const MaxDepth = 100

// Fault is a part of a JSON text that a Struct cannot hold as it is written.
type Fault struct {
	// Path is the place, such as "input.ids[2]", or empty for the whole text.
	Path string
	// Offset is the byte of the text at which the part ends.
	Offset int64
	Reason string
}

// Error returns the place and the reason.
func (f *Fault) Error() string {
	if f.Path == "" {
		return f.Reason
	}
	return f.Path + ": " + f.Reason
}

// CheckJSON returns a *Fault if a Struct that is decoded from a JSON text would differ from the text: if a number would change, an
// object repeats a key, or the values nest too deeply. Texts that are not JSON pass, because decoding them reports that.
func CheckJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var open levels
	for {
		token, err := decoder.Token()
		if err != nil {
			return nil
		}
		reason := ""
		switch token := token.(type) {
		case json.Delim:
			if token == '}' || token == ']' {
				open = open[:len(open)-1]
				open.next()
				continue
			}
			if len(open) == MaxDepth {
				return &Fault{Offset: decoder.InputOffset(), Reason: fmt.Sprintf("the data nests more than %d levels", MaxDepth)}
			}
			open = append(open, &level{isObject: token == '{'})
			continue
		case string:
			if isKey, isRepeated := open.key(token); isRepeated {
				reason = "duplicate key; keep one of them"
			} else if isKey {
				continue
			}
		case json.Number:
			reason = CheckNumber(token.String())
		}
		if reason != "" {
			return &Fault{Path: open.path(), Offset: decoder.InputOffset(), Reason: reason}
		}
		open.next()
	}
}

// level is an object or a list whose end has not been read.
type level struct {
	isObject bool
	keys     map[string]bool
	name     string // of the current value of an object
	inValue  bool   // the key of the current value has been read
	index    int    // of the current value of a list
}

// levels are the open objects and lists, from the outermost to the innermost.
type levels []*level

// key reads a string as the key of the next value, unless it is a value itself.
func (l levels) key(text string) (isKey, isRepeated bool) {
	if len(l) == 0 || !l[len(l)-1].isObject || l[len(l)-1].inValue {
		return false, false
	}
	in := l[len(l)-1]
	if in.keys == nil {
		in.keys = map[string]bool{}
	}
	isRepeated = in.keys[text]
	in.keys[text], in.name, in.inValue = true, text, true
	return true, isRepeated
}

// next ends the current value.
func (l levels) next() {
	if len(l) > 0 {
		in := l[len(l)-1]
		in.inValue = false
		in.index++
	}
}

func (l levels) path() string {
	var b strings.Builder
	for i, in := range l {
		switch {
		case !in.isObject:
			fmt.Fprintf(&b, "[%d]", in.index)
		case i > 0:
			b.WriteString("." + in.name)
		default:
			b.WriteString(in.name)
		}
	}
	return b.String()
}

// CheckNumber returns why a decimal number cannot be kept as a double, or "" if it can: a number of 2^53 or more must be printed
// with the same digits again. The digits of smaller fractions are rounded, as every reader of JSON rounds them.
func CheckNumber(text string) string {
	const remedy = "; write it as a string, in quotes"
	value, err := strconv.ParseFloat(text, 64)
	digits, exponent := decimal(text)
	switch {
	case err != nil, math.IsInf(value, 0), math.IsNaN(value), value == 0 && digits != "":
		return text + " is out of the range of numbers" + remedy
	case math.Abs(value) < 1<<53:
		return ""
	}
	if kept, keptExponent := decimal(strconv.FormatFloat(value, 'e', -1, 64)); kept != digits || keptExponent != exponent {
		return fmt.Sprintf("%s cannot be kept exactly: it would become %s%s", text, Number(value), remedy)
	}
	return ""
}

// decimal returns the significant digits of a number, and the power of ten of the last one. The sign is left out.
func decimal(text string) (digits string, exponent int) {
	mantissa, power, _ := strings.Cut(strings.ToLower(strings.TrimLeft(text, "+-")), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exponent, _ = strconv.Atoi(power)
	digits = strings.TrimLeft(whole+fraction, "0")
	significant := strings.TrimRight(digits, "0")
	return significant, exponent - len(fraction) + len(digits) - len(significant)
}
