package terminal

// escape is the character that begins an escape at the start of a line, as in OpenSSH.
const escape = '~'

// EscapeHelp is the text that `~?` prints.
const EscapeHelp = `Escapes, at the start of a line:
  ~.  leave the session at once
  ~?  this help
  ~~  send ~
`

// escapes finds escapes in typed input. The zero value is at the start of a session, which counts as the start of a
// line.
type escapes struct {
	inLine  bool // something was typed since the last newline
	pending bool // the escape character was typed
}

// found is the result of scan.
type found struct {
	leave bool
	help  int // number of help requests
}

// scan appends the part of in that is meant for the program to out. It stops at an escape that leaves the session.
func (e *escapes) scan(out, in []byte) ([]byte, found) {
	var f found
	for _, b := range in {
		if e.pending {
			e.pending = false
			switch b {
			case '.':
				f.leave = true
				return out, f
			case '?':
				f.help++
				continue
			case escape:
			default:
				out = append(out, escape)
			}
		} else if b == escape && !e.inLine {
			e.pending = true
			continue
		}
		out = append(out, b)
		e.inLine = b != '\r' && b != '\n'
	}
	return out, f
}
