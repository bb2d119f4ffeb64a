package rest

import (
	"encoding/json"

	"switchyard/gateway/rpcerror"
	"switchyard/workflows/structs"
)

// foreignFields are fields of other schedulers that are accepted in bodies, by the request that they are fields of: `enabled` of
// a schedule, `executor` and `retries` of a task.
var foreignFields = map[string]func(fields) error{
	"UpdateScheduleRequest": func(f fields) error {
		return f.replace("enabled", "paused", func(value json.RawMessage) (any, error) {
			var enabled bool
			if json.Unmarshal(value, &enabled) != nil {
				return nil, rpcerror.Invalid("enabled is %.80s; it must be true or false", value)
			}
			return !enabled, nil
		})
	},
	"SubmitTaskRequest": translateTask,
	"SubmitTasksRequest": func(f fields) error {
		var tasks []fields
		if json.Unmarshal(f["tasks"], &tasks) != nil {
			return nil // decoding the request reports it
		}
		for _, task := range tasks {
			if err := translateTask(task); err != nil {
				return err
			}
		}
		return f.set("tasks", tasks)
	},
}

// foreignParameters are parameters of other schedulers that are accepted in queries, with the fields that they stand for, by the
// request.
var foreignParameters = map[string]map[string]string{"ListRunsRequest": {"workflow": "name"}}

// translateTask replaces the foreign fields of a task.
func translateTask(f fields) error {
	err := f.replace("executor", "type", func(value json.RawMessage) (any, error) { return value, nil })
	if err != nil {
		return err
	}
	retry := fields{}
	if _, given := f["retries"]; given && f["retry"] != nil {
		if json.Unmarshal(f["retry"], &retry) != nil || retry["maxRetries"] != nil || retry["max_retries"] != nil {
			return rpcerror.Invalid("retries and retry.maxRetries are two names of one field; send one of them")
		}
		delete(f, "retry")
	}
	return f.replace("retries", "retry", func(value json.RawMessage) (any, error) {
		retry["maxRetries"] = value
		return retry, nil
	})
}

// fields are the fields of a JSON object.
type fields map[string]json.RawMessage

// replace replaces a foreign field by one of the request.
func (f fields) replace(foreign, own string, convert func(json.RawMessage) (any, error)) error {
	value, given := f[foreign]
	if !given {
		return nil
	}
	if f[own] != nil {
		return rpcerror.Invalid("%s and %s are two names of one field; send one of them", foreign, own)
	}
	converted, err := convert(value)
	if err != nil {
		return err
	}
	delete(f, foreign)
	return f.set(own, converted)
}

func (f fields) set(name string, value any) (err error) {
	f[name], err = json.Marshal(value)
	return err
}

// translateFields returns the body with foreign fields replaced. A body that is at fault is returned unchanged: decoding it reports
// the fault.
func (e *endpoint) translateFields(body []byte) ([]byte, error) {
	translate, f := foreignFields[string(e.call.Input().Name())], fields{}
	if translate == nil || e.route.Body != "*" || structs.CheckJSON(body) != nil || json.Unmarshal(body, &f) != nil {
		return body, nil
	}
	if err := translate(f); err != nil {
		return nil, err
	}
	return json.Marshal(f)
}
