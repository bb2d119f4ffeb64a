package definition

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/nearest"
)

// acceptedAlias returns the field that a field of other schedulers stands for, or nil if it is none of those that are accepted:
// executor for type, and retries, which withRetries has moved into the retry policy, for maxRetries.
func acceptedAlias(name string, message protoreflect.MessageDescriptor) protoreflect.FieldDescriptor {
	switch {
	case name == "executor" && isTask(message):
		return message.Fields().ByName("type")
	case name == retriesAlias && message.FullName() == "switchyard.v1.RetryPolicy":
		return message.Fields().ByName("max_retries")
	}
	return nil
}

const retriesAlias = "retries"

func isTask(message protoreflect.MessageDescriptor) bool {
	return message.FullName() == "switchyard.v1.TaskDefinition" || message.FullName() == "switchyard.v1.TaskDefaults"
}

// withRetries returns the entries of a message. In those of a task, or of the defaults of tasks, retries is moved into the retry
// policy.
func withRetries(n *source.Node, message protoreflect.MessageDescriptor) []source.Entry {
	at := slices.IndexFunc(n.Entries, func(e source.Entry) bool { return e.Key == retriesAlias })
	if at < 0 || !isTask(message) {
		return n.Entries
	}
	retries := n.Entries[at]
	entries := slices.Delete(slices.Clone(n.Entries), at, at+1)
	policy := source.Node{Kind: source.Mapping, At: retries.Value.At}
	into := slices.IndexFunc(entries, func(e source.Entry) bool { return e.Key == "retry" && e.Value.Kind == source.Mapping })
	if into < 0 {
		into = len(entries)
		entries = append(entries, source.Entry{Key: "retry", At: retries.At})
	} else {
		policy = *entries[into].Value
	}
	policy.Entries = append(slices.Clone(policy.Entries), retries)
	entries[into].Value = &policy
	return entries
}

// alias returns the field that other systems call name, as a path within message, or "" if there is none.
func alias(name string, message protoreflect.MessageDescriptor) string {
	name = nearest.Fold(name)
	switch message.FullName() {
	case "switchyard.v1.TaskDefaults":
		switch name {
		case shellField:
			return "spec." + shellField
		case "run":
			return "spec"
		}
		use := alias(name, (&v1.TaskDefinition{}).ProtoReflect().Descriptor())
		if first, _, _ := strings.Cut(use, "."); first != "" && fieldLike(message, first) == "" || use == "spec.command" {
			return "" // defaults have only some of the fields
		}
		return use
	case "switchyard.v1.Definition":
		switch name {
		case "jobs", "steps", "nodes", "dag":
			return "tasks"
		case "onexit", "handleron", "handlers", "cleanup", "posttasks", "always", "errors":
			return "finally"
		case "id", "title", "workflow":
			return "name"
		case "onfailure", "taskfailurepolicy":
			return "failurePolicy"
		case "parameters", "params", "args", "arguments", "variables":
			return "inputs"
		case "timeout", "maxduration":
			return "deadline"
		case "maxconcurrency", "parallelism":
			return "maxParallel"
		case "cron", "crons", "cronexpression":
			return "schedule.cron"
		case "schedules", "trigger", "triggers":
			return "schedule"
		case "timezone", "tz":
			return "schedule.timezone"
		case shellField, "interpreter":
			return "defaults.spec." + shellField
		}
	case "switchyard.v1.TaskDefinition":
		switch name {
		case "needs", "depends", "deps", "dependencies", "after", "requires", "upstream":
			return "dependsOn"
		case "if", "runif":
			return "condition"
		case "trigger", "triggerrule":
			return "when"
		case "withitems", "withparam", "each", "items", "loop":
			return "foreach"
		case "strategy":
			return "matrix"
		case "instances", "replicas", "times":
			return "parallel"
		case "maxparallel", "parallelism":
			return "concurrency"
		case "lock":
			return "mutex"
		case "memoize":
			return "cache"
		case "retries", "maxretries", "maxattempts", "retrycount":
			return "retry.maxRetries"
		case "retrypolicy":
			return "retry"
		case "cmd", "run", "script", "shell", "exec":
			return "spec.command"
		case "interpreter":
			return "spec." + shellField
		case "cwd", "workdir", "dir", "workingdir":
			return "spec.workingDirectory"
		case "environment", "envvars", "vars":
			return "env"
		case "secrets", "secret", "secretenvironment", "envsecrets", "secretvars", "envfromsecret":
			return "secretEnv"
		case "timeoutms", "timeoutseconds", "timeoutsec":
			return "timeout"
		case "kind", "executor", "uses":
			return "type"
		case "cpus", "cpu":
			return "resources.cores"
		case "memory", "mem":
			return "resources.memoryMb"
		case "gpu":
			return "resources.gpus"
		case "labels", "nodeselector", "runson":
			return "constraints.nodeLabels"
		case "node", "host", "target":
			return "constraints.targetNode"
		case "stopsignal", "killsignal", "signalonstop", "signal":
			return "stop.signal"
		case "killtimeout", "stopgraceperiod", "stoptimeout", "graceperiod", "terminationgraceperiodseconds", "maxcleanuptimesec":
			return "stop.grace"
		case "allowfailure", "ignoreerrors", "continueonfailure":
			return "continueOnError"
		}
	case "switchyard.v1.Artifacts":
		switch name {
		case "upload", "uploads", "outputs", "output", "produces", "paths", "path", "save":
			return "out"
		case "download", "downloads", "inputs", "input", "consumes", "restore":
			return "in"
		case "retentiondays", "retention", "expirein", "expires", "ttl":
			return "keep"
		}
	case "switchyard.v1.ArtifactOut":
		switch name {
		case "paths", "files", "file", "glob", "source", "src":
			return "path"
		case "ifnofilesfound", "optional":
			return "ifNone"
		}
	case "switchyard.v1.ArtifactIn":
		switch name {
		case "name", "artifact", "source":
			return "from"
		case "to", "into", "dest", "destination", "target", "dir":
			return "path"
		}
	case "switchyard.v1.Stop":
		switch name {
		case "timeout", "graceperiod", "wait":
			return "grace"
		}
	case "switchyard.v1.RetryPolicy":
		switch name {
		case "retries", "retry", "maxretry", "max", "count", "attempts", "maxattempts", "limit":
			return "maxRetries"
		case "delay", "delayms", "backoff", "interval", "initialms":
			return "backoffMs"
		case "factor", "multiplier":
			return "backoffMultiplier"
		}
	case "switchyard.v1.Resources":
		switch name {
		case "cpu", "cpus":
			return "cores"
		case "memory", "mem":
			return "memoryMb"
		case "gpu":
			return "gpus"
		case "gpumemory", "gpumem", "vram", "vrammb":
			return "gpuMemoryMb"
		case "gputype", "accelerator":
			return "gpuModel"
		case "numa":
			return "numaNode"
		}
	case "switchyard.v1.Constraints":
		switch name {
		case "label", "labels", "nodeselector":
			return "nodeLabels"
		case "node", "host", "target":
			return "targetNode"
		case "gpu", "needsgpu":
			return "requiresGpu"
		case "memory", "memorymb", "mem":
			return "minMemoryMb"
		case "disk", "diskgb":
			return "minDiskGb"
		}
	case "switchyard.v1.RunConcurrency":
		switch name {
		case "max", "limit", "runs":
			return "maxRuns"
		case "policy", "onconflict":
			return "strategy"
		}
	case "switchyard.v1.ScheduleDefinition":
		switch name {
		case "crons", "expression", "cronexpression", "at", "times", "schedule", "schedules", "every", "interval":
			return "cron"
		case "tz", "zone", "location":
			return "timezone"
		case "suspend", "suspended", "disabled", "enabled":
			return v1.SchedulePaused
		case "concurrencypolicy", "overlappolicy", "strategy":
			return "overlap"
		case "startingdeadlineseconds", "startingdeadline", "catchupwindow", "deadline":
			return "catchUp"
		case "inputs", "args", "arguments", "params", "parameters", "with":
			return "input"
		}
	case "switchyard.v1.InputDefinition":
		switch name {
		case "options", "choices", "values", "oneof":
			return "enum"
		case "value":
			return "default"
		}
	case "switchyard.v1.Semaphore":
		switch name {
		case "permits", "max", "count", "size":
			return "limit"
		}
	case "switchyard.v1.Cache":
		switch name {
		case "expires", "expiry", "maxage", "for":
			return "ttl"
		}
	case "switchyard.v1.RunSpec":
		switch name {
		case "name", "ref":
			return "workflow"
		case "inputs", "with", "args", "parameters":
			return "input"
		}
	case "switchyard.v1.ApprovalSpec":
		switch name {
		case "prompt", "text", "question", "description":
			return "message"
		}
	case "switchyard.v1.Approvers":
		switch name {
		case "name", "people", "person", "user", "users":
			return "names"
		case "role":
			return "roles"
		}
	case "switchyard.v1.ContainerSpec":
		switch name {
		case "volumes", "volume", "volumemounts", "binds":
			return "mounts"
		case "cmd", "run", "script":
			return "command"
		case "interpreter":
			return shellField
		case "cwd", "workdir", "dir", "workingdir":
			return "workingDirectory"
		case "tag":
			return "image"
		}
	case "switchyard.v1.K8sJobSpec":
		switch name {
		case "cmd", "run", "script":
			return "command"
		case "interpreter":
			return shellField
		}
	case "switchyard.v1.VpsSpec":
		switch name {
		case "volumes", "volume", "volumemounts", "binds":
			return "mounts"
		case "command", "cmd", "entrypoint":
			return "init"
		case "cwd", "workdir", "dir", "workingdir":
			return "workingDirectory"
		case "key", "sshkey", "publickey", "sshkeys", "authorizedkeys":
			return "sshPublicKey"
		case "tag":
			return "image"
		}
	case "switchyard.v1.Mount":
		switch name {
		case "source", "src", "from", "host":
			return "hostPath"
		case "target", "destination", "dst", "to", "mountpath":
			return "containerPath"
		case "ro":
			return "readOnly"
		}
	case "switchyard.v1.ShellSpec":
		switch name {
		case "cmd", "run", "script", "exec":
			return "command"
		case "interpreter":
			return shellField
		case "cwd", "workdir", "dir", "workingdir":
			return "workingDirectory"
		}
	}
	return ""
}
