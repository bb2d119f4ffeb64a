package inside

import (
	"reflect"
	"strings"
	"testing"
)

const (
	passwdText = "root:x:0:0:root:/root:/bin/bash\n#comment\n\nann:x:1000:1000:Ann:/home/ann:/bin/zsh\nbad:x:many:1::/:/bin/sh\nshort:x:1\n"
	groupText  = "root:x:0:\nann:x:1000:\nwheel:x:10:root,ann\naudio:x:29:bob,ann\n"
)

func TestUserIsParsed(t *testing.T) {
	ann := User{Name: "ann", UID: 1000, GID: 1000, Groups: []uint32{10, 29}, Home: "/home/ann", Shell: "/bin/zsh"}
	annInAudio, annInGroup5 := ann, ann
	annInAudio.GID, annInAudio.Groups = 29, nil
	annInGroup5.GID, annInGroup5.Groups = 5, nil
	for who, want := range map[string]User{
		"ann": ann, "1000": ann, "ann:audio": annInAudio, "1000:29": annInAudio, "ann:5": annInGroup5,
		"0":      {Name: "root", Groups: []uint32{10}, Home: "/root", Shell: "/bin/bash"},
		"4711":   {UID: 4711},
		"4711:9": {UID: 4711, GID: 9},
	} {
		got, err := parseUser(who, strings.NewReader(passwdText), strings.NewReader(groupText))
		if err != nil {
			t.Errorf("%s: %v", who, err)
			continue
		}
		if len(got.Groups) == 0 {
			got.Groups = nil
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", who, got, want)
		}
	}
	for _, who := range []string{"eve", "bad", "short", "-1", "4294967295", "4294967296", "ann:none", "", "#comment"} {
		if got, err := parseUser(who, strings.NewReader(passwdText), strings.NewReader(groupText)); err == nil {
			t.Errorf("%q is %+v", who, got)
		}
	}
	if got, err := parseUser("5", nil, nil); err != nil || got.UID != 5 {
		t.Errorf("without files: %+v, error %v", got, err)
	}
}

func FuzzUser(f *testing.F) {
	f.Add("ann", passwdText, groupText)
	f.Add("1:1", ":::::::", ":::")
	f.Fuzz(func(t *testing.T, who, passwd, group string) {
		_, _ = parseUser(who, strings.NewReader(passwd), strings.NewReader(group))
	})
}
