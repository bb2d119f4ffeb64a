//go:build engines

package disk

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// baseOf returns an image as a base.
func baseOf(t testing.TB, path string) Base {
	t.Helper()
	info, err := Inspect(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return Base{Path: path, Format: info.Format, VirtualSize: info.VirtualSize}
}

func TestOverlayTakesWritesAndBecomesAnImage(t *testing.T) {
	dir := t.TempDir()
	base := baseOf(t, newImage(t, dir, "base.qcow2", "64M"))
	fill(t, base.Path, 1, 0, 1<<20)
	before, err := os.ReadFile(base.Path)
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "a,b:c disk.qcow2")
	if err := CreateOverlay(t.Context(), overlay, base, 1<<30); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(overlay); err != nil || info.Size() > 1<<20 {
		t.Errorf("a new disk takes %d bytes, %v", info.Size(), err)
	}
	fill(t, overlay, 2, 512<<10, 1<<20)
	whole := filepath.Join(dir, "whole.qcow2")
	if err := Flatten(t.Context(), overlay, whole, func(string) {}); err != nil {
		t.Fatal(err)
	}
	if got := baseOf(t, whole); got.VirtualSize != 1<<30 || got.Format != FormatQcow2 {
		t.Errorf("the image is %+v", got)
	}
	hasPattern(t, whole, 1, 0, 512<<10)
	hasPattern(t, whole, 2, 512<<10, 1<<20)
	hasPattern(t, whole, 0, 2<<20, 1<<20)
	if after, err := os.ReadFile(base.Path); err != nil || string(after) != string(before) {
		t.Errorf("the base has changed, %v", err)
	}
	if _, err := os.Stat(whole + partialSuffix); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a partial file: %v", err)
	}
}

func TestOverlayHasTheSizeOfItsBaseByDefault(t *testing.T) {
	dir := t.TempDir()
	raw := make([]byte, 3<<20)
	copy(raw[bootMarkAt:], bootMark)
	if err := os.WriteFile(filepath.Join(dir, "base"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "disk")
	if err := CreateOverlay(t.Context(), overlay, baseOf(t, filepath.Join(dir, "base")), 0); err != nil {
		t.Fatal(err)
	}
	if _, virtual, err := chainSize(t.Context(), overlay); err != nil || virtual != 3<<20 {
		t.Errorf("the disk has %d bytes, %v", virtual, err)
	}
	fill(t, overlay, 7, 0, 4096)
}

func TestOverlaySmallerThanItsBaseIsRefused(t *testing.T) {
	dir := t.TempDir()
	base := baseOf(t, newImage(t, dir, "base", "3G"))
	err := CreateOverlay(t.Context(), filepath.Join(dir, "disk"), base, 1<<30)
	if !wantError(t, err, "disk size 1 GiB is smaller than image "+base.Path+" (3 GiB)") {
		t.Error("the spec is at fault")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("there are %v, %v", left, err)
	}
}

func TestOverlayReplacesNoFile(t *testing.T) {
	dir := t.TempDir()
	base := baseOf(t, newImage(t, dir, "base", "3G"))
	path := filepath.Join(dir, "disk")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CreateOverlay(t.Context(), path, base, 0); !errors.Is(err, os.ErrExist) {
		t.Errorf("error %v", err)
	}
	if err := Flatten(t.Context(), base.Path, path, func(string) {}); !errors.Is(err, os.ErrExist) {
		t.Errorf("error %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "mine" {
		t.Errorf("the file has %q, %v", text, err)
	}
}

func TestCallsOfQemuImgAreBounded(t *testing.T) {
	dir := t.TempDir()
	// A preallocated image is written in full.
	_, err := run(t.Context(), time.Minute, 1<<20, "create", "-q", "-f", "raw", "-o", "preallocation=full", filepath.Join(dir, "large"), "16M")
	if info, statErr := os.Stat(filepath.Join(dir, "large")); err == nil || statErr == nil && info.Size() > 1<<20 {
		t.Errorf("a file larger than its bound is written: %v, %v", info, err)
	}
	newImage(t, dir, "image", "1M")
	_, err = run(t.Context(), time.Nanosecond, 0, "info", filepath.Join(dir, "image"))
	wantError(t, err, "did not finish within 1ns")
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("stopped")
	cancel(cause)
	if _, err = run(ctx, time.Minute, 0, "info", filepath.Join(dir, "image")); !errors.Is(err, cause) {
		t.Errorf("error %v, want the cause of the end", err)
	}
}
