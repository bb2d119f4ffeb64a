// Package tasks implements TaskService. SubmitTask and SubmitTasks start a run for each task; gateway/singletask makes its
// definition. gateway/tasklist lists the tasks of all runs.
//
// Of this module it may import proto, gateway/auth, gateway/definitions, gateway/rpcerror, gateway/singletask, gateway/submission,
// workflows/definition/source and workflows/names.
package tasks
