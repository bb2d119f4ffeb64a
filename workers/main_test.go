package workers_test

import (
	"testing"

	"switchyard/workers/workertest"
)

func TestMain(m *testing.M) { workertest.Main(m) }
