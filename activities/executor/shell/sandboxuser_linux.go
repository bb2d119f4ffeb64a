package shell

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// sandboxUsers is a range that systemd documents as unused, see its UIDS-GIDS.md.
var sandboxUsers = Users{First: 1_900_000_000, Count: 1 << 16}

// users assigns a separate user to each sandbox.
type users struct {
	all Users

	mu   sync.Mutex
	next int
	free []*user
}

// user is a user id that no other worker of the machine uses while its lock is
// held. The lock is a socket with its name, which disappears with the process.
type user struct {
	id   int
	lock net.PacketConn
}

func newUsers(all Users) *users {
	if all == (Users{}) {
		all = sandboxUsers
	}
	return &users{all: all}
}

// acquire returns a user that has no processes.
func (u *users) acquire() (*user, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if last := len(u.free) - 1; last >= 0 {
		one := u.free[last]
		u.free = u.free[:last]
		return one, nil
	}
	var busy map[int]bool
	for range u.all.Count {
		id := u.all.First + u.next%u.all.Count
		u.next++
		lock, err := net.ListenPacket("unixgram", "@switchyard-sandbox-user-"+strconv.Itoa(id))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("find a free sandbox user: %w", err)
		}
		if busy == nil {
			busy = usersWithProcesses()
		}
		if busy[id] {
			lock.Close() // left behind by a killed worker
			continue
		}
		return &user{id: id, lock: lock}, nil
	}
	return nil, fmt.Errorf("all %d sandbox users from %d are in use", u.all.Count, u.all.First)
}

// release makes a user available again. None of the user's processes may be running.
func (u *users) release(one *user) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.free = append(u.free, one)
}

func (u *users) close() error {
	var errs []error
	for _, one := range u.free {
		errs = append(errs, one.lock.Close())
	}
	u.free = nil
	return errors.Join(errs...)
}

func usersWithProcesses() map[int]bool {
	busy := map[int]bool{}
	paths, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			continue // the process has ended
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			busy[int(stat.Uid)] = true
		}
	}
	return busy
}
