package store

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// MemberReference returns the reference of an instance's result in the record of a batch.
func MemberReference(key string, index int32) string { return key + "#" + strconv.Itoa(int(index)) }

// GetResult reads the answer of an attempt by its reference, which is a key or the result of MemberReference. In the
// latter case it returns the instance's part in the form of an attempt's own answer. If there is no answer, the error is
// ErrNotFound.
func (s *Store) GetResult(ctx context.Context, reference string) (*historyv1.ExecuteResponse, error) {
	return s.AwaitResult(ctx, reference, 0)
}

// AwaitResult reads an answer by its reference, like GetResult, if the answer is known to have been stored. It waits like
// AwaitMessage.
func (s *Store) AwaitResult(ctx context.Context, reference string, patience time.Duration) (*historyv1.ExecuteResponse, error) {
	key, number, member := strings.Cut(reference, "#")
	index, err := strconv.ParseInt(number, 10, 32)
	if member && err != nil {
		return nil, fmt.Errorf("read %q: not the number of an instance", reference)
	}
	if member {
		if kept := s.batches.find(key); kept != nil {
			if answer := kept.answer(int32(index)); answer != nil {
				return answer, nil
			}
		}
	}
	record := &historyv1.ExecuteResponse{}
	if err := s.AwaitMessage(ctx, key, record, patience); err != nil || !member {
		return record, err
	}
	kept := newKeptBatch(key, record)
	s.batches.keep(kept)
	if answer := kept.answer(int32(index)); answer != nil {
		return answer, nil
	}
	return nil, fmt.Errorf("read %s: %w", reference, ErrNotFound)
}

// MemberAnswer returns the result of one instance of a batch in the form of an attempt's own answer.
func MemberAnswer(batch *historyv1.ExecuteResponse, m *historyv1.MemberResult) *historyv1.ExecuteResponse {
	res := &historyv1.ExecuteResponse{
		State: cmp.Or(m.GetState(), v1.TaskCompleted), Reason: m.GetReason(), Error: m.GetError(),
		Result: m.GetResult(), Record: m.GetRecord(), Checkpoint: m.GetCheckpoint(),
		Node: batch.GetNode(), AssignedAt: batch.GetAssignedAt(),
		CompletedAt: batch.GetAssignedAt(),
	}
	if m.GetStartedMs() >= 0 { // it has run
		started := batch.GetAssignedAt().AsTime().Add(time.Duration(m.GetStartedMs()) * time.Millisecond)
		res.StartedAt = timestamppb.New(started)
		res.CompletedAt = timestamppb.New(started.Add(time.Duration(m.GetTookMs()) * time.Millisecond))
	}
	if res.Result == nil {
		res.Result = &v1.TaskResult{}
	}
	return res
}

// AwaitItems reads a list that is known to have been stored. It waits like AwaitMessage.
func (s *Store) AwaitItems(ctx context.Context, key string, patience time.Duration) (*historyv1.ItemList, error) {
	var list historyv1.ItemList
	if err := s.AwaitMessage(ctx, key, &list, patience); err != nil {
		return nil, err
	}
	return &list, nil
}
