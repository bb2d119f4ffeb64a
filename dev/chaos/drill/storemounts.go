package drill

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// ErrNoMounts means that a scenario must mount file systems and that this is impossible here. The wrapping error has
// the reason.
var ErrNoMounts = errors.New("no file system can be mounted here")

// storeBytes is the size of the file system that holds the store.
const storeBytes = "64m"

// storeMounts fills the file system of the store, and then replaces it by an empty folder. Runs that end meanwhile wait
// and report why.
func storeMounts(y *Cluster) (err error) {
	device := filepath.Join(y.Dir, "device")
	if err := errors.Join(os.Mkdir(device, 0o700), os.Mkdir(y.storeDir(), 0o700)); err != nil {
		return err
	}
	if err := syscall.Mount("chaos", device, "tmpfs", 0, "size="+storeBytes); err != nil {
		return fmt.Errorf("%w: %w", ErrNoMounts, err)
	}
	defer func() { err = errors.Join(err, syscall.Unmount(device, syscall.MNT_DETACH)) }()
	bind := func() error { return syscall.Mount(device, y.storeDir(), "", syscall.MS_BIND, "") }
	detach := func() error { return syscall.Unmount(y.storeDir(), syscall.MNT_DETACH) }
	if err := bind(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, detach()) }()
	if err := y.start("a"); err != nil {
		return err
	}
	filler := filepath.Join(device, "filler")
	for _, outage := range []struct {
		name       string
		begin, end func() error
	}{
		{"full", func() error { return fill(filler) }, func() error { return os.Remove(filler) }},
		{"gone", detach, bind},
	} {
		if err := y.endsInOutage(outage.name, outage.begin, outage.end); err != nil {
			return fmt.Errorf("a file system that is %s: %w", outage.name, err)
		}
	}
	return nil
}

// endsInOutage makes a run end during an outage of its store.
func (y *Cluster) endsInOutage(name string, begin, end func() error) error {
	gate := y.gate(name)
	id, tasks, err := y.runOn("", y.crowd(name, 2, job{gate: gate}))
	if err != nil {
		return err
	}
	if err := begin(); err != nil {
		return err
	}
	late, err := y.submit(y.crowd("late-"+name, 1, job{ticks: 1}))
	err = errors.Join(err, y.open(gate))
	if err == nil {
		err = y.awaitProblems(id)
	}
	if err := errors.Join(err, end()); err != nil {
		return err
	}
	for _, id := range []string{id, late} {
		if err := y.survivedOutage(id); err != nil {
			return err
		}
	}
	return y.untouched(id, tasks)
}

// fill writes a file until its file system is full.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	for size := 1 << 20; size > 0; size /= 2 {
		for block := make([]byte, size); ; {
			if _, err = f.Write(block); err != nil {
				break
			}
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}
