package definition

import (
	"math"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/policy"
	"switchyard/workflows/structs"
)

// gpuRules checks what a task asks of the GPUs of its node.
type gpuRules struct{ *decoder }

// number checks the number of GPUs in resources at p.
func (r gpuRules) number(res *v1.Resources, p *source.Path) {
	gpus, at := res.GetGpus(), p.Field("gpus")
	thousandths := math.Round(gpus*1000) / 1000 // the division gives the nearest number to each decimal fraction
	switch {
	case math.IsNaN(gpus) || gpus < 0 || gpus >= 1 && gpus == math.Trunc(gpus) || gpus < 1 && gpus == thousandths:
	case gpus > 1:
		r.Add(r.locate(at), at, at.Local()+" is "+structs.Number(gpus)+"; it must be a whole number, or a part of one GPU below 1", "write "+structs.Number(math.Ceil(gpus)))
	default:
		r.Add(r.locate(at), at, at.Local()+" is "+structs.Number(gpus)+"; a part of a GPU must be a multiple of 0.001", "write "+structs.Number(min(math.Ceil(gpus*1000)/1000, 1)))
	}
}

// check checks a task at p.
func (r gpuRules) check(task *v1.TaskDefinition, p *source.Path) {
	res, at := task.GetResources(), p.Field("resources")
	asked := policy.GPUsOf(res)
	r.number(res, at)
	_, ofTarget, _ := strings.Cut(task.GetConstraints().GetTargetNode(), "::")
	switch gpus, memory := at.Field("gpus"), at.Field("gpuMemoryMb"); {
	case asked.Part == nil || r.IsSettled(gpus) || r.IsSettled(memory):
	case v1.IsRemote(task.GetType()):
		if asked.Part.GetThousandths() > 0 {
			r.Add(r.locate(gpus), gpus, gpus.Local()+" is a part of a GPU, but a task of type "+task.GetType()+" gets whole GPUs of its cluster", "write 1")
		}
	case ofTarget != "":
		target := p.Field("constraints").Field("targetNode")
		r.Add(r.locate(target), target, target.Local()+" names whole GPUs, but resources ask for a part of one", "name the node alone")
	}
	model := at.Field("gpuModel")
	if res.GetGpuModel() != "" && strings.Trim(res.GetGpuModel(), " -") == "" {
		r.Add(r.locate(model), model, model.Local()+" names no model: spaces and hyphens do not count", "write a part of the name of the GPU, such as h100")
	}
	if res.GetGpuModel() != "" && asked.Count == 0 && ofTarget == "" && !task.GetConstraints().GetRequiresGpu() {
		r.Add(r.locateKey(model), model, model.Local()+" is for tasks with a GPU", "add gpus or gpuMemoryMb")
	}
}
