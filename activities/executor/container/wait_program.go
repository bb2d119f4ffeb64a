package container

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/docker/docker/api/types/container"
)

// waitPath is the path of the waiting program in a container.
const waitPath = "/.switchyard-wait"

// waitCode maps an architecture to the machine code of a program that does nothing until a signal ends it, such as the
// SIGTERM that the engine's init forwards. The program needs neither a shell nor a library of the image.
var waitCode = map[string]struct {
	machine uint16 // ELF machine number
	code    []byte
}{

	"amd64": {62, []byte{
		0xb8, 0x22, 0x00, 0x00, 0x00, // mov eax, 34 (pause)
		0x0f, 0x05, // syscall
		0xeb, 0xf7, // jmp to the start
	}},
	"arm64": {183, []byte{
		0x00, 0x00, 0x80, 0xd2, // mov x0, 0
		0x01, 0x00, 0x80, 0xd2, // mov x1, 0
		0x02, 0x00, 0x80, 0xd2, // mov x2, 0
		0x03, 0x00, 0x80, 0xd2, // mov x3, 0
		0x28, 0x09, 0x80, 0xd2, // mov x8, 73 (ppoll)
		0x01, 0x00, 0x00, 0xd4, // svc 0
		0xfa, 0xff, 0xff, 0x17, // b to the start
	}},
}

// waitProgram returns the waiting program as an ELF file with one segment, or nil for an unknown architecture.
func waitProgram(architecture string) []byte {
	w, ok := waitCode[architecture]
	if !ok {
		return nil
	}
	const (
		base    = 0x400000
		headers = 64 + 56
		page    = 0x10000
	)
	size := uint64(headers + len(w.code))
	var file bytes.Buffer
	for _, part := range []any{
		// ELF header: 64 bits, little endian, executable.
		[]byte{0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}, uint16(2), w.machine, uint32(1),
		uint64(base + headers), uint64(64), uint64(0), uint32(0), uint16(64), uint16(56), uint16(1), uint16(0), uint16(0), uint16(0),
		// Program header: loaded, readable and executable.
		uint32(1), uint32(5), uint64(0), uint64(base), uint64(base), size, size, uint64(page),
		w.code,
	} {
		_ = binary.Write(&file, binary.LittleEndian, part) // writing to a buffer cannot fail
	}
	return file.Bytes()
}

// waitProgramFor returns the waiting program for the architecture of an image.
func (e *Executor) waitProgramFor(ctx context.Context, image string) ([]byte, error) {
	found, err := e.images.inspectImage(ctx, image)
	if err != nil {
		return nil, fmt.Errorf("inspect image %s: %w", image, err)
	}
	program := waitProgram(found.Architecture)
	if program == nil {
		return nil, errCannotRun(fmt.Errorf("image %s is for %s, for which Switchyard has no built-in init; set spec.init, for example to [\"sleep\", \"infinity\"]", image, found.Architecture))
	}
	return program, nil
}

// putWaitProgram copies the waiting program into the container, unless program is nil.
func (r *running) putWaitProgram(ctx context.Context, program []byte) error {
	if program == nil {
		return nil
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	err := w.WriteHeader(&tar.Header{Name: waitPath[1:], Mode: 0o555, Size: int64(len(program))})
	if err == nil {
		_, err = w.Write(program)
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = r.e.docker.CopyToContainer(ctx, r.id, "/", &archive, container.CopyToContainerOptions{})
	}
	if err != nil {
		return fmt.Errorf("copy the init program to container %s: %w", r.name, causeOf(ctx, err))
	}
	return nil
}
