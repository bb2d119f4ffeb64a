package disk

import "testing"

func TestOverlayNeedsFreeRoom(t *testing.T) {
	for _, test := range []struct {
		free, bytes int64
		want        string
	}{
		{reserve, 0, ""},
		{reserve - 1, 0, "/x has only 1024 MiB free; a disk needs at least 1 GiB"},
		{600 << 20, 0, "/x has only 600 MiB free; a disk needs at least 1 GiB"},
		{2 << 30, 3 << 30, "/x has only 2 GiB free; an image of 3 GiB needs 1 GiB in addition to its size"},
		{4 << 30, 3 << 30, ""},
	} {
		err := checkFree("/x", test.free, test.bytes)
		switch {
		case test.want != "":
			wantError(t, err, test.want)
		case err != nil:
			t.Error(err)
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"512": 512, "1K": 1 << 10, "50G": 50 << 30, "1024T": 1 << 50} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "0G", "G", "-1G", "1.5G", "1GB", "1g", "1025T", "9223372036854775807T", "99999999999999999999", " 1G"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}
