package drill

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

const (
	// ageScale is how much faster attempts age at another scale than full.
	ageScale = 10
	// oldTasks is the number of tasks of an age.
	oldTasks = 10
)

// oldAttempts stops Temporal for 5 s, for 30 s, and for 5 min under tasks that are 40 min, 6 min and 1 s old. Tasks
// continue if much would be lost with them: only the youngest end in the second outage, and only the oldest do not in the third. The
// others start again when their lease is over.
func oldAttempts(y *Cluster) error {
	if err := y.start("a", "b"); err != nil {
		return err
	}
	scaled := func(d time.Duration) time.Duration {
		if y.Scale.Name != Full.Name {
			return d / ageScale
		}
		return d
	}
	gate := y.gate("work")
	ids := map[string]string{}
	begin := func(age string) error {
		d := y.crowd(age, oldTasks, job{gate: gate})
		id, err := y.submitGrowing(d, scaled(15*time.Second), scaled(10*time.Minute))
		if err != nil {
			return err
		}
		ids[age] = id
		return y.awaitStarted(id, namesOf(d), "", oldTasks)
	}
	outage := func(length time.Duration, survivors ...string) error {
		if err := y.freeze(serverName); err != nil {
			return err
		}
		if err := y.pause(scaled(length)); err != nil {
			return err
		}
		if err := y.thaw(serverName); err != nil {
			return err
		}
		for age, id := range ids {
			tasks := namesOf(y.crowd(age, oldTasks, job{}))
			var ended int
			err := y.eventually(fmt.Sprintf("the tasks of age %s are running after an outage of %s", age, length), func() (bool, error) {
				ended = 0
				for _, task := range tasks {
					executions, err := y.executions(id, task)
					if err != nil || len(executions) == 0 {
						return false, err
					}
					last := executions[len(executions)-1]
					if !last.term.IsZero() || time.Since(last.lastSign) > time.Second {
						return false, nil // it has been ended, and has not started again
					}
					if len(executions) > 1 {
						ended++
					}
				}
				return true, nil
			})
			if err != nil {
				return err
			}
			y.report("after an outage of %s, %d of %d tasks of age %s have been started again", length, ended, oldTasks, age)
		}
		for _, age := range survivors {
			if err := y.untouched(ids[age], namesOf(y.crowd(age, oldTasks, job{}))); err != nil {
				return fmt.Errorf("an outage of %s has ended tasks of age %s: %w", length, age, err)
			}
		}
		return nil
	}
	const oldest, middle, youngest = "40min", "6min", "1s"
	if err := begin(oldest); err != nil {
		return err
	}
	if err := y.pause(scaled(34 * time.Minute)); err != nil {
		return err
	}
	if err := begin(middle); err != nil {
		return err
	}
	if err := y.pause(scaled(6 * time.Minute)); err != nil {
		return err
	}
	if err := begin(youngest); err != nil {
		return err
	}
	if err := outage(5*time.Second, oldest, middle, youngest); err != nil {
		return err
	}
	if err := outage(30*time.Second, oldest, middle); err != nil {
		return err
	}
	if err := outage(5*time.Minute, oldest); err != nil {
		return err
	}
	if err := y.open(gate); err != nil {
		return err
	}
	for _, id := range ids {
		if _, err := y.finished(id); err != nil {
			return err
		}
	}
	return nil
}

// submitGrowing starts a run with a heartbeat time-out that grows up to longest.
func (y *Cluster) submitGrowing(d definition, heartbeat, longest time.Duration) (string, error) {
	text, err := json.Marshal(d)
	if err != nil {
		return "", err
	}
	runs := switchyardv1connect.NewRunServiceClient(http.DefaultClient, y.gateways[0])
	res, err := runs.SubmitRun(y.ctx, connect.NewRequest(&v1.SubmitRunRequest{
		Source: &v1.SubmitRunRequest_Document{Document: string(text)}, Options: &v1.RunOptions{HeartbeatTimeout: durationpb.New(heartbeat), MaxLease: durationpb.New(longest)},
	}))
	if err != nil {
		return "", fmt.Errorf("submit %s: %w", d.Name, err)
	}
	return res.Msg.GetId(), nil
}
