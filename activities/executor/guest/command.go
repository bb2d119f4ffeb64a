package guest

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"switchyard/activities/executor"
)

// markByte begins and ends a mark in the output of a starting program. Terminals pass it on unchanged.
const markByte = "\x1e"

// launcher returns the command line that starts any command. The shell prints a mark with its process id, reads its
// instructions from standard input, and carries them out. The line has no character that login shells treat
// differently.
func launcher(token string, terminal bool) string {
	script := `printf "\036` + token + ` %s\036" $$;IFS= read -r _sy_line&&eval "$_sy_line"`
	if terminal {
		// The terminal would otherwise echo the line, truncate it and interpret some of its bytes.
		script = `_sy_mode=$(stty -g)||exit 126;stty raw -echo;` + script
	}
	return "exec /bin/sh -c '" + script + "'"
}

// instructions returns the line that tells the launcher what to do, without its final newline.
func instructions(c executor.Command, token string) (string, error) {
	var b strings.Builder
	b.WriteString(`_sy_shell=${SHELL:-/bin/sh};_sy_nl=$(printf "\nx");_sy_nl=${_sy_nl%x};`)
	if c.Terminal != nil {
		b.WriteString(`stty "$_sy_mode";printf "\036` + token + ` 0\036";`)
	}
	if c.Dir != "" {
		dir := c.Dir
		if !path.IsAbs(dir) {
			dir = "./" + dir // neither an option nor looked up in CDPATH
		}
		b.WriteString("cd " + quote(dir) + " || exit 126;")
	}
	var other []string
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		value := c.Env[name]
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0):
			return "", refuse("environment variable %q has an invalid name or value", name)
		case isShellName(name):
			fmt.Fprintf(&b, "export %s=%s;", name, quote(value))
		default:
			other = append(other, quote(name+"="+value))
		}
	}
	b.WriteString("exec ")
	if len(other) > 0 {
		b.WriteString("env " + strings.Join(other, " ") + " ")
	}
	switch {
	case len(c.Args) > 0:
		for i, arg := range c.Args {
			if strings.ContainsRune(arg, 0) {
				return "", refuse("argument %d contains a NUL byte", i)
			}
			b.WriteString(quote(arg) + " ")
		}
	case c.Line != "":
		if strings.ContainsRune(c.Line, 0) {
			return "", refuse("the command line contains a NUL byte")
		}
		b.WriteString(`"$_sy_shell" -c ` + quote(c.Line))
	default:
		b.WriteString(`"$_sy_shell" -l`)
	}
	return strings.TrimSuffix(b.String(), " "), nil
}

// quote returns a text as one word of a POSIX shell, on one line.
func quote(text string) string {
	text = strings.ReplaceAll(text, "'", `'\''`)
	return "'" + strings.ReplaceAll(text, "\n", `'"$_sy_nl"'`) + "'"
}

var shellName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// isShellName reports whether a shell can export a variable. Bash keeps some of its own variables read-only.
func isShellName(name string) bool {
	switch name {
	case "BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID":
		return false
	}
	return shellName.MatchString(name) && !strings.HasPrefix(name, "_sy_")
}

// environment returns the variables of a command: those of every program, the one of its terminal, and its own. Later
// ones win.
func (g *Guest) environment(c executor.Command) map[string]string {
	env := map[string]string{}
	maps.Copy(env, g.options.Env)
	if c.Terminal != nil && c.Terminal.Type != "" {
		env["TERM"] = c.Terminal.Type
	}
	maps.Copy(env, c.Env)
	return env
}
