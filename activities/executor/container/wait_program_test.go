package container

import (
	"bytes"
	"debug/elf"
	"testing"
)

func TestWaitProgramIsAnExecutable(t *testing.T) {
	for architecture, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		program := waitProgram(architecture)
		f, err := elf.NewFile(bytes.NewReader(program))
		if err != nil {
			t.Fatalf("%s: %v", architecture, err)
		}
		if f.Type != elf.ET_EXEC || f.Machine != machine || len(f.Progs) != 1 {
			t.Errorf("%s: %+v", architecture, f.FileHeader)
		}
		segment := f.Progs[0]
		if at := f.Entry - segment.Vaddr; segment.Flags != elf.PF_R|elf.PF_X || segment.Filesz != uint64(len(program)) || !bytes.Equal(program[at:], waitCode[architecture].code) {
			t.Errorf("%s: segment %+v, entry %#x", architecture, segment.ProgHeader, f.Entry)
		}
	}
	if waitProgram("riscv64") != nil {
		t.Error("there is a program for a machine that has none")
	}
}
