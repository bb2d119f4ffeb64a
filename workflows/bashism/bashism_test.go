package bashism

import (
	"slices"
	"strings"
	"testing"
)

func nothingSet(string) bool { return false }

// found returns what Find finds in a script.
func found(script string) []string {
	var what []string
	for _, use := range Find(script, nothingSet) {
		what = append(what, use.What)
	}
	return what
}

func TestWhatOnlyBashHasIsFound(t *testing.T) {
	for script, want := range map[string][]string{
		"set -euo pipefail":                                   {"set -o pipefail"},
		"set -eu -o pipefail":                                 {"set -o pipefail"},
		"set -E; set -o errtrace; set -o posix":               {"set -E", "set -o errtrace", "set -o posix"},
		"[[ -f x ]] && source x":                              {"[[ ]]", "source"},
		"if [[ $a =~ ^b ]]; then :; fi":                       {"[[ ]]"},
		"a=(1 2); echo \"${a[@]}\" ${#a[@]}":                  {"arrays"},
		"echo ${PIPESTATUS[0]}; a[0]=1":                       {"arrays"},
		"a+=1":                                                {"+="},
		"declare -A m; typeset n":                             {"declare", "typeset"},
		"f() { local -r x=1; }; export -f f":                  {"local -r", "export -f"},
		"function f { :; }; function g() { :; }":              {"function"},
		"my-f() { :; }":                                       {"my-f()"},
		"diff <(a) >(b)":                                      {"<( )", ">( )"},
		"cat <<< x":                                           {"<<<"},
		"a &> x; b &>> x; c >& x":                             {"&>", "&>>", ">& FILE"},
		"exec {fd}<x; exec -a x y":                            {"{fd}>", "exec -a"},
		"a |& b":                                              {"|&"},
		"((i++)); for ((i=0; i<3; i++)); do :; done; let i=1": {"(( ))", "for (( ))", "let"},
		"echo $[1+1] $((x++)) $((2**3)) $((1,2)) $((16#ff))":  {"$[ ]", "++ in $(( ))", "** in $(( ))", ", in $(( ))", "16#ff"},
		"echo $'a' $\"b\"":                                    {"$'...'", `$"..."`},
		"for i in {1..5} {a..e..2}; do :; done":               {"{1..5}"},
		"mkdir -p {a,b}/c; cp x{,.bak}":                       {"{a,b}"},
		"cp \"$f\"{,.bak}; echo {01..$n} {1..3}":              {"{a,b}", "{1..5}"},
		"echo ${x//a/b} ${x/#a} ${x:0:3} ${@:2}":              {"${x/a/b}", "${x:0:1}"},
		"echo ${x^^} ${x,} ${x@Q} ${!x} ${!x*}":               {"${x^^}", "${x,,}", "${x@Q}", "${!x}"},
		"case x in a) ;& b) ;;& *) ;; esac":                   {";& in case", ";;& in case"},
		"select x in a; do :; done; coproc x":                 {"select", "coproc"},
		"for i in 1; { :; }":                                  {"for ...; { }"},
		"time { a; }":                                         {"time { }"},
		"x=$(< file)":                                         {"$(< FILE)"},
		"echo -e x; echo -ne x":                               {"echo -e", "echo -ne"},
		"read -ra x; read -s x; read":                         {"read -ra", "read -s", "read without a variable"},
		"printf -v x y; printf '%s %q' x":                     {"printf -v", "printf %q"},
		"[ \"$a\" == b ]; test a =~ b; [ -v x ]":              {"== in [ ]", "=~ in [ ]", "[ -v ]"},
		"trap x SIGTERM EXIT; trap x ERR; trap -p":            {"trap ... SIGTERM", "trap ... ERR", "trap -p"},
		"kill -SIGTERM 1; kill -s SIGINT 1":                   {"kill -SIGTERM", "kill -s SIGINT"},
		"type -P x; wait -n; unset -n x; hash -t x":           {"type -P", "wait -n", "unset -n", "hash -t"},
		"shopt -s globstar; pushd /; mapfile x":               {"shopt", "pushd", "mapfile"},
		"echo $RANDOM $((RANDOM % 3)) $UID":                   {"$RANDOM", "$UID"},
		"SECONDS=0; echo $SECONDS":                            {"$SECONDS"},
		"cat <<E\n${a[0]} [[ ]]\nE":                           {"arrays"},
		"x=$([[ a ]]); (cd x && [[ b ]])":                     {"[[ ]]"},
	} {
		if got := found(script); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
}

func TestUsesHaveTheirPlaces(t *testing.T) {
	const script = "cd x\nif [[ a ]]; then\n  source y\n  source z\nfi"
	uses := Find(script, nothingSet)
	if len(uses) != 2 || uses[0].Offset != strings.Index(script, "[[") || uses[1].Offset != strings.Index(script, "source") {
		t.Errorf("found %v", uses)
	}
}

func TestPlainScriptsHaveNoFindings(t *testing.T) {
	for _, script := range []string{
		"set -eu; set -o nounset; set +e; set -- -E -o x; set -x; set -o; set -f", "(set -o pipefail) 2>/dev/null && set -o pipefail",
		"[ \"$a\" = b ] && [ -n \"$b\" ] || test a != b; [ -v ]; [ \"$a\" = '==' ]", ". ./x; f() { local x=$1 y; }; export A=1; readonly B; export -p",
		"echo ${x:-y} ${x#y} ${x##*/} ${x%.*} ${x%%y} ${#x} ${x:=y} ${x:?no} ${x+y} $# $@ ${1} ${10} $$ $!", "echo $((x + 1)) $(( (a == b) ? 1 : 0 )) $((0x1f)) $(cat x) `cat y`",
		"a > x 2>&1; b >> x < y; c 3<&0; d >&2; e >&-; f >&$fd; g <> x; h >| x; i & wait", "cat <<'E'\n[[ x ]] ${a[0]} $'x' {1..3} <(a)\nE\ncat <<-E\n\t{a,b} (( )) source |&\n\tE",
		"bash -c '[[ -f x ]] && source y'; bash <<'E'\na=(1)\nE\nsh -c \"echo {1..3}\"", "echo '$RANDOM' \"{1..5}\" '[[' function source [[; grep '[[:space:]]' x; echo a[0] x[[]",
		"if !(grep -q x y); then :; fi; ((a; b) | c); ! a", "case $x in a|b) ;; (c) d;; *[!0-9]*) e;; esac", "for i; do :; done; for i in a \"$@\"; do :; done; while read -r x _; do :; done; until a; do :; done",
		"echo {} {a} {{.Names}} stash@{0} \\{a,b\\} {a.b} a,b {\"a\":1,\"b\":2}; curl http://x/{a,b}; find . -exec rm {} +; awk '{print $1, $2}' x",
		"trap 'rm -f x' EXIT INT TERM; trap - HUP; trap '' 2; kill -TERM 1; kill -s INT 1; kill -9 1", "read x; read -r a b; read -p 'x? ' a; echo -n x; printf '%s\\n' x; printf '100%%q'; printf -- x; type x; wait; wait $!; time make",
		"source() { . \"$1\"; }; source x; pushd() { cd \"$1\"; }", "RANDOM=$(od -An -N2 /dev/urandom); echo $RANDOM ${UID:-0}; read SECONDS; echo $SECONDS", "if [ -n \"$BASH_VERSION\" ]; then shopt -s x; a=(1); fi",
		"command -v source >/dev/null || echo no; make function=x declare let; git commit -m select", "echo \"unterminated [[ ", "fi; [[ a ]]", "", "#!/bin/sh\n# source [[ a ]]\nls # (( x ))",
		"$x ${y} \"$z\"; \"$a\"/b -e; x=1 y=2 cmd; umask 022; cd -P x; ulimit -n; getopts ab: x; shift 2; unset -v x; alias ll='ls -l'; eval \"$x\"; exec \"$@\"",
	} {
		if got := found(script); got != nil {
			t.Errorf("%s: %q", script, got)
		}
	}
}

func TestVariablesFromOutsideAreNotThoseOfBash(t *testing.T) {
	if uses := Find("echo $RANDOM $UID", func(name string) bool { return name == "RANDOM" }); len(uses) != 1 || uses[0].What != "$UID" {
		t.Errorf("found %v", uses)
	}
}

func TestHostileScriptsAreNotParsed(t *testing.T) {
	for _, part := range []string{"(", "$(", "{ ", "$((", "${a[", "[[ ( ", "\"$(", "<(", "`", "if ", "! ", "a | "} {
		if got := found("[[ a ]]\n" + strings.Repeat(part, 1<<20/len(part))); got != nil {
			t.Errorf("%s: %q", part, got)
		}
	}
}

func FuzzFind(f *testing.F) {
	for _, script := range []string{"set -euo pipefail\n[[ -f x ]]", "a=(1); echo ${a[@]} {1..3} $((x++))", "cat <<E\n$(< x)\nE", "trap x SIGTERM; time; read -d", "f() { local -r; }; time", "${!x@}$[]`"} {
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script string) {
		for _, use := range Find(script, nothingSet) {
			if use.Offset < 0 || use.Offset >= len(script) || use.What == "" {
				t.Errorf("%q: %v", script, use)
			}
		}
	})
}
