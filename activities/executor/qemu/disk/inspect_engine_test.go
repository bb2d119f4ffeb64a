//go:build engines

package disk

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestInspectReturnsFormatAndSize(t *testing.T) {
	dir := t.TempDir()
	newImage(t, dir, "new.qcow2", "3G")
	qemuImg(t, dir, "create", "-q", "-f", "qcow2", "-o", "compat=0.10", "old", "1M")
	bootSector := make([]byte, 1<<20)
	copy(bootSector[bootMarkAt:], bootMark)
	table := make([]byte, 1<<20)
	copy(table[512:], gptMark)
	for name, content := range map[string][]byte{"boot": bootSector, "table": table, "named.IMG": make([]byte, 1<<20)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]Info{
		"new.qcow2": {Format: FormatQcow2, VirtualSize: 3 << 30},
		"old":       {Format: FormatQcow2, VirtualSize: 1 << 20},
		"boot":      {Format: FormatRaw, VirtualSize: 1 << 20},
		"table":     {Format: FormatRaw, VirtualSize: 1 << 20},
		"named.IMG": {Format: FormatRaw, VirtualSize: 1 << 20},
	} {
		got, err := Inspect(t.Context(), filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if got.ActualSize < 0 || got.ActualSize > 2<<20 {
			t.Errorf("%s takes %d bytes", name, got.ActualSize)
		}
		got.ActualSize = 0
		if got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

func TestInspectRefusesNonImagesAndExternalReferences(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "shadow")
	files := map[string]string{
		"empty": "", "empty.img": "", "text": "root:x:0:0:root\n", "text.raw": strings.Repeat("é", 4000), "zeros": strings.Repeat("\x00", 4096),
		"short": qcow2Magic, "packed": "\x1f\x8b\x08\x00" + strings.Repeat("\x00", 600), "shadow": "root:x",
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	newImage(t, dir, "base", "1M")
	qemuImg(t, dir, "create", "-q", "-f", "qcow2", "-b", "base", "-F", "qcow2", "overlay")
	qemuImg(t, dir, "create", "-q", "-f", "qcow2", "-u", "-b", secret, "-F", "raw", "hostile", "1M")
	qemuImg(t, dir, "create", "-q", "-f", "qcow2", "-o", "data_file=data,data_file_raw=on", "outside", "1M")
	for _, format := range []string{"vmdk", "vdi", "vhdx", "qed", "vpc"} {
		qemuImg(t, dir, "create", "-q", "-f", format, format+".img", "8M")
	}
	cut, err := os.ReadFile(newImage(t, dir, "whole", "1G"))
	if err != nil {
		t.Fatal(err)
	}
	corrupt := append([]byte{}, cut...)
	binary.BigEndian.PutUint64(corrupt[qcow2HeaderSize:], featureCorrupt)
	huge := append([]byte{}, cut...)
	binary.BigEndian.PutUint64(huge[24:], 1<<62)
	locked := append([]byte{}, cut...)
	binary.BigEndian.PutUint32(locked[32:], 2) // LUKS; qemu-img creates such an image only if it can measure its CPU usage
	for name, content := range map[string][]byte{"cut": cut[:1000], "corrupt": corrupt, "huge": huge, "locked": locked} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"empty": "not a disk image: the file is empty", "empty.img": "not a disk image: the file is empty", "text": "not a disk image: the file contains text",
		"text.raw": "not a disk image: the file contains text", "zeros": "not a disk image", "short": "cut short", "packed": "decompress",
		"overlay": "backing file", "hostile": "backing file", "outside": "external data file", "locked": "encrypted",
		"vmdk.img": "format vmdk is not supported", "vdi.img": "format vdi is not supported", "vhdx.img": "format vhdx is not supported", "qed.img": "format qed is not supported",
		"vpc.img": "format vhd is not supported", "cut": "cut short", "corrupt": "corrupt", "huge": "1 PiB", ".": "not a regular file",
		"missing": "no such file",
	} {
		_, err := Inspect(t.Context(), filepath.Join(dir, name))
		wantError(t, err, want)
		if err != nil && !strings.HasPrefix(err.Error(), "image "+filepath.Join(dir, name)) {
			t.Errorf("%v: it does not name its image", err)
		}
	}
}
