package guestimage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	// bootLimit is how long a guest may take until its first login. It takes 6 s under emulation on an idle machine.
	bootLimit = 5 * time.Minute
	// pollEvery is the interval between two checks of a condition.
	pollEvery = 100 * time.Millisecond
	// memory is the memory of a guest, in MiB.
	memory = "256"
)

// Options configures a guest.
type Options struct {
	// Image is the base image of its disk; "" means the image of Build.
	Image string
	// Disk is the path of the overlay, which is created if it does not exist. "" means an overlay that is removed with
	// the test.
	Disk string
	// Seed is the path of the seed's CD image. "" means no seed, so that no login is possible.
	Seed string
}

// Guest is a running virtual machine. It ends with the test.
type Guest struct {
	// Disk is the path of its overlay.
	Disk string
	// Address is the host:port to which the guest's SSH port is forwarded.
	Address string

	t       testing.TB
	console string
	monitor *monitor
	exited  chan struct{} // closed when the process has ended
}

// Start boots a guest under emulation, which works on every machine.
func Start(t testing.TB, o Options) *Guest {
	t.Helper()
	if o.Image == "" {
		o.Image = Build(t)
	}
	// Socket paths have at most 107 bytes, and t.TempDir exceeds that for long test names.
	dir, err := os.MkdirTemp("", "guest-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if o.Disk == "" {
		o.Disk = filepath.Join(dir, "disk.qcow2")
	}
	g := &Guest{Disk: o.Disk, t: t, console: filepath.Join(dir, "console"), exited: make(chan struct{})}
	if _, err := os.Stat(o.Disk); errors.Is(err, os.ErrNotExist) {
		out, err := exec.CommandContext(t.Context(), "qemu-img", "create", "-q", "-f", "qcow2", "-b", o.Image, "-F", "qcow2", o.Disk).CombinedOutput()
		if err != nil {
			t.Fatalf("create the overlay: %v\n%s", err, out)
		}
	}
	g.run(dir, o.Seed)
	return g
}

// run starts the process.
func (g *Guest) run(dir, seed string) {
	g.t.Helper()
	socket := filepath.Join(dir, "qmp")
	args := []string{
		"-machine", "q35,accel=tcg", "-cpu", "max", "-m", memory, "-smp", "1", "-nodefaults", "-no-user-config", "-display", "none",
		"-serial", "file:" + g.console, "-qmp", "unix:" + socket + ",server=on,wait=off",
		"-drive", "if=virtio,format=qcow2,file=" + g.Disk,
		"-netdev", "user,id=net0,hostfwd=tcp:127.0.0.1:0-:22", "-device", "virtio-net-pci,netdev=net0,romfile=",
	}
	if seed != "" {
		args = append(args, "-drive", "if=virtio,format=raw,readonly=on,file="+seed)
	}
	var log bytes.Buffer
	cmd := exec.Command("qemu-system-x86_64", args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait()
		close(g.exited)
	}()
	g.t.Cleanup(func() {
		if g.monitor != nil {
			_ = g.monitor.close()
		}
		_ = cmd.Process.Kill()
		<-g.exited
		if g.t.Failed() {
			g.t.Logf("%s\n%s", g.Console(), log.Bytes())
		}
	})
	var err error
	if g.monitor, err = openMonitor(socket, g.exited); err != nil {
		g.t.Fatalf("%v\n%s", err, log.Bytes())
	}
	port, err := g.monitor.sshPort()
	if err != nil {
		g.t.Fatal(err)
	}
	g.Address = fmt.Sprintf("127.0.0.1:%d", port)
}

// Console returns the console output of the guest.
func (g *Guest) Console() string {
	text, err := os.ReadFile(g.console)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Login waits until the guest accepts a login with a key, and returns the connection, which ends with the test. A host
// key other than hostKey fails the test.
func (g *Guest) Login(user string, key ssh.Signer, hostKey ssh.PublicKey) *ssh.Client {
	g.t.Helper()
	config := &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.FixedHostKey(hostKey),
		// dropbear offers key types that it lacks, and drops the connection of a client that chooses one of them.
		HostKeyAlgorithms: []string{hostKey.Type()},
	}
	var last error
	// QEMU accepts connections before the guest does and loses the early ones, so the first attempts are short.
	limit := 2 * time.Second
	for end := time.Now().Add(bootLimit); time.Now().Before(end); time.Sleep(pollEvery) {
		client, err := dial(g.Address, config, limit)
		limit = min(limit*3/2, 30*time.Second)
		if err == nil {
			g.t.Cleanup(func() { _ = client.Close() })
			return client
		}
		last = err
		select {
		case <-g.exited:
			g.t.Fatalf("the guest has ended before a login was possible: %v", err)
		default:
		}
	}
	g.t.Fatalf("no login after %v: %v", bootLimit, last)
	return nil
}

// dial opens an SSH connection within a time limit.
func dial(address string, config *ssh.ClientConfig, limit time.Duration) (*ssh.Client, error) {
	conn, err := net.DialTimeout("tcp", address, limit)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	client, channels, requests, err := ssh.NewClientConn(conn, address, config)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return ssh.NewClient(client, channels, requests), conn.SetDeadline(time.Time{})
}

// PressPower presses the power button of the guest.
func (g *Guest) PressPower() {
	g.t.Helper()
	if _, err := g.monitor.execute("system_powerdown", nil); err != nil {
		g.t.Fatal(err)
	}
}

// AwaitEnd waits for the end of the guest's process.
func (g *Guest) AwaitEnd(ctx context.Context) error {
	select {
	case <-g.exited:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the guest has not ended: %w", context.Cause(ctx))
	}
}
