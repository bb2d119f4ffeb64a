package definition

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/nearest"
)

// alias returns the field that other systems call name, as a path within message, or "" if there is none.
func alias(name string, message protoreflect.MessageDescriptor) string {
	name = nearest.Fold(name)
	switch message.FullName() {
	case "switchyard.v1.TaskDefaults":
		use := alias(name, (&v1.TaskDefinition{}).ProtoReflect().Descriptor())
		if first, _, _ := strings.Cut(use, "."); first != "" && fieldLike(message, first) == "" {
			return "" // defaults have only some of the fields
		}
		return use
	case "switchyard.v1.Definition":
		switch name {
		case "jobs", "steps", "nodes", "dag":
			return "tasks"
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
		case "allowfailure", "ignoreerrors", "continueonfailure":
			return "continueOnError"
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
	case "switchyard.v1.ContainerSpec":
		switch name {
		case "volumes", "volume", "volumemounts", "binds":
			return "mounts"
		case "cmd":
			return "command"
		case "cwd", "workdir", "dir", "workingdir":
			return "workingDirectory"
		case "tag":
			return "image"
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
		case "cmd", "run", "script", "shell", "exec":
			return "command"
		case "cwd", "workdir", "dir", "workingdir":
			return "workingDirectory"
		}
	}
	return ""
}
