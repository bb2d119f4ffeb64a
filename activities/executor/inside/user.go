package inside

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// User is a user from a process's own /etc/passwd.
type User struct {
	// Name is "" if only the UID is known.
	Name     string
	UID, GID uint32
	// Groups are the supplementary groups from /etc/group.
	Groups []uint32
	// Home and Shell may be "".
	Home, Shell string
}

// maxAccounts bounds how much of /etc/passwd and /etc/group is read, in bytes.
const maxAccounts = 4 << 20

// parseUser looks up a user given as "name", "uid", "name:group" or "uid:gid". A numeric user needs no account, as in containers.
// The readers deliver /etc/passwd and /etc/group; either is nil if there is no such file.
func parseUser(who string, passwd, group io.Reader) (User, error) {
	name, groupName, hasGroup := strings.Cut(who, ":")
	u, err := parsePasswd(name, passwd)
	if err != nil {
		return User{}, err
	}
	gid, groups, err := parseGroups(u.Name, groupName, group)
	if err != nil {
		return User{}, err
	}
	if hasGroup {
		u.GID = gid
		return u, nil
	}
	u.Groups = slices.DeleteFunc(groups, func(g uint32) bool { return g == u.GID })
	return u, nil
}

func parsePasswd(name string, passwd io.Reader) (User, error) {
	id, isNumber := number(name)
	for fields := range accounts(passwd, 7) {
		uid, okUID := number(fields[2])
		gid, okGID := number(fields[3])
		if okUID && okGID && (fields[0] == name || isNumber && uid == id) {
			return User{Name: fields[0], UID: uid, GID: gid, Home: fields[5], Shell: fields[6]}, nil
		}
	}
	if !isNumber {
		return User{}, refuse(fmt.Sprintf("user %q is not in its /etc/passwd", name))
	}
	return User{UID: id}, nil
}

// parseGroups returns the GID of the group called name, and the groups that a user is in.
func parseGroups(user, name string, group io.Reader) (gid uint32, groups []uint32, err error) {
	gid, found := number(name)
	for fields := range accounts(group, 4) {
		id, ok := number(fields[2])
		if !ok {
			continue
		}
		if !found && fields[0] == name {
			gid, found = id, true
		}
		if user != "" && slices.Contains(strings.Split(fields[3], ","), user) && !slices.Contains(groups, id) {
			groups = append(groups, id)
		}
	}
	if name != "" && !found {
		return 0, nil, refuse(fmt.Sprintf("group %q is not in its /etc/group", name))
	}
	return gid, groups, nil
}

// accounts yields the colon-separated fields of each line of a file that has the given number of fields.
func accounts(file io.Reader, fields int) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		if file == nil {
			return
		}
		lines := bufio.NewScanner(io.LimitReader(file, maxAccounts))
		lines.Buffer(nil, maxAccounts)
		for lines.Scan() {
			parts := strings.Split(lines.Text(), ":")
			if len(parts) == fields && !yield(parts) {
				return
			}
		}
	}
}

// number parses a UID or GID. It rejects the highest one, which means "none" to the kernel.
func number(text string) (uint32, bool) {
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), err == nil && n < 1<<32-1
}
