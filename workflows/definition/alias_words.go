package definition

import (
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/nearest"
	"switchyard/workflows/structs"
)

// wordHint returns a hint that names the allowed word that was probably meant, or "".
func wordHint(word string, field protoreflect.FieldDescriptor, words []string) string {
	if use := aliasedWord(nearest.Fold(strings.TrimSuffix(word, "()")), field); slices.Contains(words, use) {
		return "did you mean " + use + "?"
	}
	if field.FullName() == whenField && strings.ContainsAny(word, ".=!<>&|") {
		return "condition takes an expression; when takes one of these words"
	}
	return nearest.DidYouMean(word, words)
}

// whenField is the field whose words describe how parents end.
const whenField = protoreflect.FullName("switchyard.v1.TaskDefinition.when")

// aliasedWord returns the allowed word for a word of other systems, or "".
func aliasedWord(word string, field protoreflect.FieldDescriptor) string {
	switch field.FullName() {
	case typeField, defaultTypeField:
		return v1.TaskTypeOfAlias(word)
	case whenField:
		switch word {
		case "onfailure", "failure", v1.TaskFailed, "fail", "onerror", "error", "anyfailed":
			return "one_failed"
		case "onsuccess", "success", "succeeded", "ok", "allsucceeded":
			return "all_success"
		case "done", v1.TaskCompleted, "finished", "oncompletion":
			return "all_done"
		}
	case "switchyard.v1.ArtifactOut.if_none":
		switch word {
		case "error":
			return "fail"
		case "warn", "skip":
			return v1.IfNoneIgnore
		}
	case "switchyard.v1.Stop.signal":
		return "SIG" + strings.ToUpper(word)
	case "switchyard.v1.Notification.on":
		switch word {
		case "onfailure", "failure", "fail", "onerror", "error", "errors", v1.RunRejected:
			return v1.NotifyFailed
		case "onsuccess", "success", "succeeded", "ok", "done", "complete", "finished":
			return v1.NotifyCompleted
		case "onabort", "abort", "aborted", "canceled", "cancel", "killed":
			return v1.NotifyCancelled
		}
	case "switchyard.v1.InputDefinition.type":
		switch word {
		case "int", "int32", "int64", "long":
			return "integer"
		case "float", "double", "decimal":
			return "number"
		case "bool", "flag", "switch":
			return "boolean"
		case "str", "text":
			return "string"
		case "array", "sequence", "tuple":
			return "list"
		case "map", "mapping", "dict", "dictionary", "json", "struct":
			return "object"
		}
	case "switchyard.v1.ScheduleDefinition.overlap":
		switch word {
		case "forbid", "drop", "ignore":
			return v1.OverlapSkip
		case "buffer", "bufferall", "bufferone", "wait":
			return v1.OverlapQueue
		case "cancel", "cancelother", "terminateother", "terminate":
			return v1.OverlapReplace
		case "allowall", "concurrent", "parallel":
			return v1.OverlapAllow
		}
	case "switchyard.v1.Definition.failure_policy":
		switch word {
		case "stop", "failfast", "abort", "fail":
			return "halt"
		case "ignore", "keepgoing":
			return "continue"
		}
	}
	return ""
}

// truthHint returns a hint for a misspelled boolean, or "".
func truthHint(text string) string {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "yes", "on", "y", "true":
		return "did you mean true?"
	case "no", "off", "n", "false":
		return "did you mean false?"
	}
	return ""
}

// numberHint returns a hint for a value in a number field that is not a number, or "". whole is set if it must be an integer.
func numberHint(text string, field protoreflect.FieldDescriptor, whole bool) string {
	text = strings.TrimSpace(text)
	if n, err := strconv.ParseFloat(text, 64); err == nil && (!whole || n == float64(int64(n))) {
		return "write " + text + " without quotes"
	}
	if millicores, ok := strings.CutSuffix(text, "m"); ok && field.JSONName() == "cores" {
		if n, err := strconv.ParseFloat(millicores, 64); err == nil {
			return "it is in cores: " + structs.Number(n/1000)
		}
	}
	if strings.HasSuffix(field.JSONName(), "Ms") {
		if d, err := parseDuration(text); err == nil && text != "" {
			return "it is in milliseconds: " + strconv.FormatInt(d.Milliseconds(), 10)
		}
	}
	if size, ok := mebibytes(text); ok && strings.HasSuffix(field.JSONName(), "Mb") {
		return "it is in MiB: " + strconv.FormatInt(size, 10)
	}
	if size, ok := mebibytes(text); ok && strings.HasSuffix(field.JSONName(), "Gb") && size%1024 == 0 {
		return "it is in GiB: " + strconv.FormatInt(size/1024, 10)
	}
	return ""
}

// mebibytes parses a size such as 512Mi or 4GB.
func mebibytes(text string) (int64, bool) {
	text = strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(strings.ReplaceAll(text, " ", "")), "b"), "i")
	for unit, factor := range map[string]int64{"m": 1, "g": 1024, "t": 1024 * 1024} {
		if digits, ok := strings.CutSuffix(text, unit); ok {
			if n, err := strconv.ParseInt(digits, 10, 32); err == nil && n > 0 {
				return n * factor, true
			}
		}
	}
	return 0, false
}
