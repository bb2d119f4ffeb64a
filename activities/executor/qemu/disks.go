package qemu

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"switchyard/activities/executor"
	"switchyard/activities/executor/qemu/disk"
	"switchyard/activities/executor/qemu/seed"
	v1 "switchyard/proto/switchyard/v1"
)

// prepareDisks creates the disk of a machine on its image, and the seed with its user and keys.
func (e *Executor) prepareDisks(ctx context.Context, a executor.Attempt, p plan, f folder, client, host keyPair) error {
	size := int64(0) // 0 means the size of the image
	if p.diskSize != "" {
		var err error
		if size, err = disk.ParseSize(p.diskSize); err != nil {
			return badSpec(fmt.Errorf("vmDiskSize: %w", err))
		}
	}
	base, err := e.opts.Images.Ensure(ctx, p.image, a.Notify)
	if err != nil {
		return err
	}
	if err := disk.CreateOverlay(ctx, f.file(diskFile), base, size); err != nil {
		return err
	}
	err = seed.Write(f.file(seedFile), seed.Seed{
		InstanceID: "switchyard-" + folderName(a.ID), Hostname: hostname(a.Identity), User: p.user,
		AuthorizedKeys: append([]string{client.public}, p.keys...), HostKey: host.private, HostKeyPublic: host.public,
	})
	if err != nil {
		return badSpec(err)
	}
	return nil
}

// notInHostname matches the characters that a host name cannot contain.
var notInHostname = regexp.MustCompile(`[^a-z0-9]+`)

// maxHostname bounds the length of a host name.
const maxHostname = 63

// hostname returns the name of a machine: the name of its task, or of its run if the run was created for the machine.
func hostname(id executor.Identity) string {
	name := id.Task
	if name == v1.TypeVPS {
		name = id.Run
	}
	name = notInHostname.ReplaceAllString(strings.ToLower(name), "-")
	if id.Index >= 0 {
		name += fmt.Sprintf("-%d", id.Index)
	}
	name = strings.Trim(name, "-")
	name = strings.Trim(name[:min(len(name), maxHostname)], "-")
	if name == "" {
		return "machine"
	}
	return name
}
