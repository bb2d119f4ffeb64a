package terminal

// escape is the character that begins an escape at the start of a line, as in OpenSSH.
const escape = '~'

// EscapeHelp is what `~?` prints.
const EscapeHelp = `Escapes, at the start of a line:
  ~.  leave the session at once
  ~?  this help
  ~~  send ~
`

// escapes finds the escapes in what is typed. The zero value is at the start of a session, which counts as that of a line.
type escapes struct {
	inLine  bool // something was typed since the last newline
	pending bool // the escape character was typed
}

// found is what scan has found.
type found struct {
	leave bool
	help  int // how many times help was asked for
}

// scan appends to out what of in is for the program. It stops at an escape that leaves.
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
