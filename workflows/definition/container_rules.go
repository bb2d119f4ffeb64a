package definition

import (
	"fmt"
	"maps"
	"net/netip"
	slashed "path"
	"slices"
	"strings"

	"github.com/distribution/reference"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/nearest"
	"switchyard/workflows/policy"
)

// These patterns match names in the spec of a container.
var (
	capabilityName = lazyPattern(`^[A-Z]+(_[A-Z]+)*$`)
	networkName    = lazyPattern(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
	secretName     = lazyPattern(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)
	containerUser  = lazyPattern(`^[^\s:]+(:[^\s:]+)?$`)
	bucketObject   = lazyPattern(`^(s3|gs)://[^/?]+/[^?]+(\?.*)?$`)
)

const (
	autoAddress = "auto"
	alwaysPull  = "always"
	// ownLabels is the prefix of the labels that Switchyard sets on containers.
	ownLabels = "switchyard."
)

// ownMounts are the paths of the directories that every task's container has.
var ownMounts = []string{"/switchyard", "/local_temp", "/shared"}

// givenNetworks are the built-in networks of an engine, in which a container cannot choose an address.
var givenNetworks = []string{"", "default", "bridge", "none", policy.HostNetwork}

// ulimitNames are the limits that a container engine accepts.
var ulimitNames = []string{"core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile", "nproc", "rss", "rtprio", "rttime", "sigpending", "stack"}

// containerFields are the fields that the specs of containers and of machines share.
type containerFields interface {
	proto.Message
	policy.Spec
	GetImage() string
	GetWorkingDirectory() string
	GetUser() string
	GetIp() string
	GetUlimits() []*v1.Ulimit
	GetPullPolicy() string
	GetRegistryAuth() string
	GetImageTarball() string
	GetEnvironment() string
}

// containerRules checks the specs of container tasks, and what machines have in common with them.
type containerRules struct{ *decoder }

// check checks the spec of a container task.
func (r containerRules) check(spec *v1.ContainerSpec, p *source.Path) {
	r.fields(spec, p)
	_, shell := spec.GetCommand().GetKind().(*structpb.Value_StringValue)
	if at := p.Field("entrypoint"); shell && spec.GetEntrypoint() != nil {
		r.Add(r.locateKey(at), at, "spec.entrypoint cannot be combined with a command string, which the image's sh runs", "write command as a list: the arguments of the entry point")
	}
	for _, name := range slices.Sorted(maps.Keys(spec.GetLabels())) {
		if at := p.Field("labels").Key(name); strings.HasPrefix(name, ownLabels) {
			r.Add(r.locateKey(at), at, "label "+name+" is reserved: Switchyard sets the labels that begin with "+ownLabels, "")
		}
	}
}

// fields checks the fields that the specs of containers and of machines share.
func (r containerRules) fields(spec containerFields, p *source.Path) {
	r.word(spec.GetImage(), p.Field("image"), isImage, "not a valid image name", `such as "ubuntu:22.04"; names are lower case`)
	r.word(spec.GetWorkingDirectory(), p.Field("workingDirectory"), slashed.IsAbs, "not an absolute path", "it is a directory in the container")
	r.word(spec.GetUser(), p.Field("user"), containerUser().MatchString, "not a valid user", `write a name, "uid" or "uid:gid"`)
	for i, name := range spec.GetCapAdd() {
		r.word(name, p.Field("capAdd").Item(i), isCapability, "not a valid capability", `such as "NET_ADMIN"`)
	}
	r.mounts(spec.GetMounts(), p.Field("mounts"))
	r.network(spec, p)
	r.ulimits(spec.GetUlimits(), p.Field("ulimits"))
	r.imageSource(spec, p)
}

func isImage(text string) bool {
	_, err := reference.ParseAnyReference(text)
	return err == nil
}

func isCapability(text string) bool { return capabilityName().MatchString(policy.Capability(text)) }

// mounts checks the mounts of a container.
func (r containerRules) mounts(mounts []*v1.Mount, p *source.Path) {
	where := map[string]int{}
	for i, m := range mounts {
		host, inside := p.Item(i).Field("hostPath"), p.Item(i).Field("containerPath")
		r.word(m.GetHostPath(), host, slashed.IsAbs, "not an absolute path", "it is a directory of the node, and does not depend on its working directory")
		r.word(m.GetContainerPath(), inside, slashed.IsAbs, "not an absolute path", "it is where the container sees the directory")
		at := slashed.Clean(m.GetContainerPath())
		if !slashed.IsAbs(at) || condition.HasTemplate(at) {
			continue
		}
		before, twice := where[at]
		where[at] = i
		switch own := slices.IndexFunc(ownMounts, func(own string) bool { return at == own || policy.Below(own, at) }); {
		case at == "/":
			r.Add(r.locate(inside), inside, inside.Local()+" is the root of the container; nothing can be mounted over that", "")
		case own >= 0:
			r.Add(r.locate(inside), inside, inside.Local()+" is "+at+"; "+ownMounts[own]+" is reserved for files of the task", "choose another path")
		case twice:
			r.Add(r.locate(inside), inside, fmt.Sprintf("%s is %s, which mounts[%d] already uses", inside.Local(), at, before), "")
		}
	}
}

// network checks the network of a container and its address there.
func (r containerRules) network(spec containerFields, p *source.Path) {
	name, at := spec.GetNetwork(), p.Field("network")
	hint := `write "none", "host", or the name of one made with docker network create`
	if strings.HasPrefix(name, "container:") {
		hint = "a container may not join the network of another; give both a network by name"
	}
	r.word(name, at, networkName().MatchString, "not a valid network", hint)
	ip := p.Field("ip")
	if text := spec.GetIp(); text == "" || condition.HasTemplate(text) {
		return
	}
	r.word(spec.GetIp(), ip, func(text string) bool {
		_, err := netip.ParseAddr(text)
		return text == autoAddress || err == nil
	}, "not an IP address", `write one such as "10.5.0.9", or "auto"`)
	if slices.Contains(givenNetworks, name) && !r.IsSettled(at) {
		shown := "the engine's own network"
		if name != "" {
			shown = "network " + name
		}
		r.Add(r.locateKey(ip), ip, "spec.ip has no effect in "+shown, "network names one with addresses to choose from, made with docker network create --subnet")
	}
}

// ulimits checks the process limits of a container.
func (r containerRules) ulimits(limits []*v1.Ulimit, p *source.Path) {
	seen := map[string]bool{}
	for i, l := range limits {
		name, hard := p.Item(i).Field("name"), p.Item(i).Field("hard")
		r.word(l.GetName(), name, func(text string) bool { return slices.Contains(ulimitNames, text) }, "not a known limit",
			strings.TrimSpace(nearest.DidYouMean(l.GetName(), ulimitNames)+" It must be "+nearest.Alternatives(ulimitNames)))
		if seen[l.GetName()] && l.GetName() != "" {
			r.Add(r.locate(name), name, name.Local()+" repeats the limit "+l.GetName(), "")
		}
		seen[l.GetName()] = true
		most := l.GetHard()
		if most > 0 && (l.GetSoft() > most || l.GetSoft() < 0) {
			r.Add(r.locate(hard), hard, fmt.Sprintf("%s is %d, which is below soft, %d", hard.Local(), most, l.GetSoft()), "")
		}
	}
}

// imageSource checks the source of a container's image.
func (r containerRules) imageSource(spec containerFields, p *source.Path) {
	auth, tarball, pull := p.Field("registryAuth"), p.Field("imageTarball"), p.Field("pullPolicy")
	r.imageOrEnvironment(p, "image", spec.GetImage(), spec.GetEnvironment(), imageHint)
	r.environment(spec.GetEnvironment(), p)
	r.word(spec.GetRegistryAuth(), auth, secretName().MatchString, "not a valid name", "name the credentials as on the node, and keep the credentials themselves there: switchyard worker --registry-auth NAME=FILE")
	r.word(spec.GetImageTarball(), tarball, func(text string) bool { return slashed.IsAbs(text) || !strings.Contains(text, "?") },
		"a URL with options", "the node decides where a bucket is and who may read it: set AWS_REGION or AWS_ENDPOINT_URL there; write a ? in the name of an object as %3F")
	r.word(spec.GetImageTarball(), tarball, func(text string) bool { return slashed.IsAbs(text) || bucketObject().MatchString(text) },
		"neither an absolute path nor the URL of an object", `such as "/srv/images/tool.tar" or "s3://bucket/tool.tar"`)
	if spec.GetEnvironment() != "" {
		r.excluded(spec, p, "images; the node fetches an environment from the store", "registryAuth", "imageTarball", "pullPolicy")
		return
	}
	if spec.GetImageTarball() == "" {
		return
	}
	if spec.GetPullPolicy() == alwaysPull {
		r.Add(r.locateKey(pull), pull, "spec.pullPolicy: always and imageTarball are mutually exclusive: an image from an archive is not pulled", "")
	}
	if spec.GetRegistryAuth() != "" {
		r.Add(r.locateKey(auth), auth, "spec.registryAuth and imageTarball are mutually exclusive: an image from an archive is not pulled", "")
	}
}

// imageHint is the hint for the source of a container's image.
const imageHint = "write image: NAME, or environment: NAME of one that `switchyard env list` shows"

// environment checks the name of an environment.
func (r containerRules) environment(name string, p *source.Path) {
	r.word(name, p.Field("environment"), v1.IsEnvironmentName, "not a valid environment name", "at most 63 of [a-z0-9._-], the first and last a letter or digit")
}

// imageOrEnvironment checks that a spec has exactly one of a field and environment.
func (r containerRules) imageOrEnvironment(p *source.Path, field, value, environment, hint string) {
	at, other := p.Field(field), p.Field("environment")
	switch {
	case r.IsSettled(at) || r.IsSettled(other):
	case value == "" && environment == "":
		r.Add(r.locate(at), at, "spec."+field+" is missing", hint)
	case value != "" && environment != "":
		r.Add(r.locateKey(at), at, "spec."+field+" and environment are mutually exclusive: an environment takes the place of an image", "leave one of them out")
	}
}

// excluded reports those of the fields that are set, because they do not apply. of describes what they are for.
func (r containerRules) excluded(spec proto.Message, p *source.Path, of string, fields ...string) {
	m := spec.ProtoReflect()
	for _, field := range fields {
		if at := p.Field(field); m.Has(m.Descriptor().Fields().ByJSONName(field)) {
			r.Add(r.locateKey(at), at, "spec."+field+" is for "+of, "leave it out")
		}
	}
}
