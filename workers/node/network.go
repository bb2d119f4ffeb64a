package node

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v3/net"

	v1 "switchyard/proto/switchyard/v1"
)

func (p *Probe) readNetwork(ctx context.Context, now time.Time) *v1.NetworkSnapshot {
	out := &v1.NetworkSnapshot{}
	links, err := p.links(ctx)
	if !p.readable("network interfaces", err) {
		return out
	}
	for _, link := range links {
		speed, err := p.linkSpeed(link)
		if p.readable("speed of link "+link, err) {
			out.BandwidthMbps += speed
		}
	}
	all, err := p.readers.NetIO(ctx)
	if !p.readable("network counters", err) {
		return out
	}
	counters := map[string]net.IOCountersStat{}
	for _, c := range all {
		if slices.Contains(links, c.Name) {
			counters[c.Name] = c
		}
	}
	out.ThroughputMbps = p.net.next(now, counters, 0, throughput)
	return out
}

// links returns the interfaces whose traffic counts: those that are up and have hardware, because
// bridges and the like carry the same traffic again. If no hardware is visible, as in a container,
// it returns all that are up. Loopback never counts.
func (p *Probe) links(ctx context.Context) ([]string, error) {
	interfaces, err := p.readers.Interfaces(ctx)
	if err != nil {
		return nil, err
	}
	var up, hardware []string
	for _, i := range interfaces {
		if slices.Contains(i.Flags, "loopback") || !slices.Contains(i.Flags, "up") {
			continue
		}
		up = append(up, i.Name)
		if _, err := fs.Stat(p.readers.Sys, path.Join("class/net", i.Name, "device")); err == nil {
			hardware = append(hardware, i.Name)
		}
	}
	if len(hardware) > 0 {
		return hardware, nil
	}
	return up, nil
}

// linkSpeed returns the speed of a link in Mbit/s, or 0 for a link without a speed: the kernel
// reports -1 for virtual links and fails the read for others.
func (p *Probe) linkSpeed(link string) (float64, error) {
	b, err := fs.ReadFile(p.readers.Sys, path.Join("class/net", link, "speed"))
	if err != nil {
		failed, ok := errors.AsType[*fs.PathError](err)
		if errors.Is(err, fs.ErrNotExist) || ok && failed.Op == "read" {
			return 0, nil
		}
		return 0, err
	}
	speed, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 32)
	if err != nil {
		return 0, err
	}
	return float64(max(speed, 0)), nil
}

// throughput returns the traffic in Mbit/s in both directions. An interface that is new or whose
// counters were reset adds nothing.
func throughput(last, now map[string]net.IOCountersStat, elapsed time.Duration) (float64, bool) {
	bytes := 0.0
	for name, after := range now {
		before, ok := last[name]
		if ok && after.BytesSent >= before.BytesSent && after.BytesRecv >= before.BytesRecv {
			bytes += float64(after.BytesSent-before.BytesSent) + float64(after.BytesRecv-before.BytesRecv)
		}
	}
	return bytes * 8 / 1e6 / elapsed.Seconds(), true
}
