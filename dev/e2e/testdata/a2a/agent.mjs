// Takes runs of two skills through success, approval, failure and cancellation, as another agent does.
//
//	node agent.mjs JSONRPC|HTTP+JSON GATEWAY
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Role, TaskState, taskStateToJSON } from '@a2a-js/sdk'
import { ClientFactory, ClientFactoryOptions } from '@a2a-js/sdk/client'
import { TaskNotCancelableError, TaskNotFoundError } from '@a2a-js/sdk/errors'

const [binding, gateway] = process.argv.slice(2)
const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { preferredTransports: [binding] })
const client = await new ClientFactory(options).createFromUrl(gateway)
assert.equal(client.transport.protocolName, binding)

const context = randomUUID()
const text = (value) => ({ content: { $case: 'text', value } })
const data = (value) => ({ content: { $case: 'data', value } })
const show = (value) => JSON.stringify(value, null, 1)

// start returns a message that starts a run of a skill.
function start(skillId, part, configuration) {
  const message = { messageId: randomUUID(), contextId: context, role: Role.ROLE_USER, metadata: { skillId }, parts: [part] }
  return { message, configuration }
}

// reply returns a message to a task.
const reply = (taskId, part) => ({ message: { messageId: randomUUID(), taskId, role: Role.ROLE_USER, parts: [part] } })

function expectState(task, state) {
  assert.equal(taskStateToJSON(task.status.state), taskStateToJSON(state), show(task))
}

// outputs returns the data of artifacts by their names.
const outputs = (artifacts) => Object.fromEntries(artifacts.map((a) => [a.name, a.parts[0].content.value]))

// refuses returns the error that a call or a stream ends with.
async function refuses(call) {
  let answer
  try {
    answer = call()
    if (answer[Symbol.asyncIterator]) answer = await answer.next()
    answer = await answer
  } catch (error) {
    return error.cause ?? error
  }
  assert.fail(`no error, but ${show(answer)}`)
}

// until calls a function until its answer is as wanted.
async function until(what, call, isWanted) {
  let answer
  for (const end = Date.now() + 300_000; Date.now() < end; await new Promise((resolve) => setTimeout(resolve, 100))) {
    answer = await call()
    if (isWanted(answer)) return answer
  }
  assert.fail(`${what} has not come: ${show(answer)}`)
}

// follow reads a stream up to a state, and returns the last status, and the artifacts and the cases of all events. It calls
// begun after the first event, which is the task.
async function follow(stream, state, begun) {
  const seen = { cases: [], artifacts: [], status: undefined }
  for await (const { payload } of stream) {
    seen.cases.push(payload.$case)
    if (payload.$case === 'artifactUpdate') seen.artifacts.push(payload.value.artifact)
    else seen.status = payload.value.status
    if (seen.cases.length === 1) await begun(payload.value)
  }
  assert.equal(seen.cases[0], 'task', show(seen))
  assert.equal(taskStateToJSON(seen.status.state), taskStateToJSON(state), show(seen))
  return seen
}

const dir = mkdtempSync(join(tmpdir(), 'agent-'))
try {
  const card = await client.getAgentCard()
  const skills = Object.fromEntries(card.skills.map((s) => [s.id, s.description]))
  assert.match(skills['a2a-greeting'] ?? show(card), /^Greets/)
  assert.match(skills['a2a-release'] ?? show(card), /image: string, required: what to release/)

  // An answer at the end of the run, and the same message again.
  const greeting = start('a2a-greeting', text('Ada'))
  const greeted = await client.sendMessage(greeting)
  expectState(greeted, TaskState.TASK_STATE_COMPLETED)
  assert.deepEqual(outputs(greeted.artifacts), { greet: { greeting: 'Hello, Ada!' } })
  assert.equal((await client.sendMessage(greeting)).id, greeted.id)

  // A stream up to the approval, which another message answers while a second stream follows the task.
  const verdict = join(dir, 'verdict')
  let task
  const release = start('a2a-release', data({ image: 'app', verdict }))
  const asked = await follow(client.sendMessageStream(release), TaskState.TASK_STATE_INPUT_REQUIRED, (first) => {
    task = first
    assert.ok([TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING].includes(task.status.state), show(task))
    writeFileSync(verdict, 'pass')
  })
  assert.equal(task.contextId, context)
  assert.deepEqual(outputs(asked.artifacts), { check: { digest: 'app@1' } }, show(asked))
  const [question, approvals] = asked.status.message.parts
  assert.match(question.content.value, /^gate asks for approval: release app\?/)
  assert.deepEqual(approvals.content.value, { approvals: [{ task: 'gate', asks: 'release app?' }] })
  assert.match((await refuses(() => client.sendMessage(reply(task.id, text('maybe'))))).message, /"maybe" is not a decision/)

  for await (const { payload } of client.resubscribeTask({ id: task.id })) {
    assert.equal(payload.$case, 'task')
    break // leaves a stream that has not ended
  }
  const released = await follow(client.resubscribeTask({ id: task.id }), TaskState.TASK_STATE_COMPLETED, async (again) => {
    expectState(again, TaskState.TASK_STATE_INPUT_REQUIRED)
    assert.deepEqual(Object.keys(outputs(again.artifacts)), ['check'])
    expectState(await client.sendMessage(reply(task.id, text('approve, looks good'))), TaskState.TASK_STATE_COMPLETED)
  })
  assert.ok(released.artifacts.some((a) => a.name === 'publish'), show(released))
  const whole = await client.getTask({ id: task.id })
  expectState(whole, TaskState.TASK_STATE_COMPLETED)
  const left = outputs(whole.artifacts)
  assert.deepEqual([left.check, left.publish], [{ digest: 'app@1' }, { url: 'https://app.example' }], show(whole))
  assert.match((await refuses(() => client.sendMessage(reply(task.id, text('approve'))))).message, /has ended/)
  assert.match((await refuses(() => client.resubscribeTask({ id: task.id }))).message, /has ended; use GetTask to read it/)

  // A run that fails.
  const broken = join(dir, 'broken')
  writeFileSync(broken, 'fail')
  const failed = await client.sendMessage(start('a2a-release', data({ image: 'app', verdict: broken })))
  expectState(failed, TaskState.TASK_STATE_FAILED)
  assert.match(failed.status.message.parts[0].content.value, /check.*7/)

  // A run that waits is cancelled, once.
  const waiting = await client.sendMessage(start('a2a-release', data({ image: 'app', verdict: join(dir, 'none') }), { returnImmediately: true }))
  await client.cancelTask({ id: waiting.id })
  await until('the end', () => client.getTask({ id: waiting.id }), (t) => t.status.state === TaskState.TASK_STATE_CANCELED)
  const second = await refuses(() => client.cancelTask({ id: waiting.id }))
  assert.ok(second instanceof TaskNotCancelableError, show(second))

  // Lists.
  const list = (request) => client.listTasks({ contextId: context, status: TaskState.TASK_STATE_UNSPECIFIED, ...request })
  const all = await until('all tasks', () => list({}), (l) => l.totalSize === 4)
  assert.deepEqual(all.tasks.map((t) => t.id), [waiting.id, failed.id, task.id, greeted.id], show(all))
  const byState = (status, ids) => until(`a list by ${status}`, () => list({ status }), (l) => l.tasks.map((t) => t.id).join() === ids.join())
  await byState(TaskState.TASK_STATE_COMPLETED, [task.id, greeted.id])
  await byState(TaskState.TASK_STATE_FAILED, [failed.id])
  await byState(TaskState.TASK_STATE_CANCELED, [waiting.id])
  await byState(TaskState.TASK_STATE_INPUT_REQUIRED, [])
  const page = await list({ pageSize: 3, includeArtifacts: true })
  const rest = await list({ pageSize: 3, includeArtifacts: true, pageToken: page.nextPageToken })
  assert.deepEqual([page.tasks.length, rest.tasks.map((t) => t.id)], [3, [greeted.id]], show([page, rest]))
  assert.deepEqual(outputs(rest.tasks[0].artifacts), { greet: { greeting: 'Hello, Ada!' } })

  // What is unknown.
  const calls = [() => client.getTask({ id: 'none' }), () => client.cancelTask({ id: 'none' }), () => client.resubscribeTask({ id: 'none' })]
  for (const call of [...calls, () => client.sendMessage(reply('none', text('approve')))]) {
    const error = await refuses(call)
    assert.ok(error instanceof TaskNotFoundError, `${call}: ${error.stack}`)
  }
  for (const method of ['sendMessage', 'sendMessageStream']) {
    const error = await refuses(() => client[method](start('a2a-relase', text('x'))))
    assert.match(error.message, /there is no skill "a2a-relase"; did you mean a2a-release\?/)
  }
} finally {
  rmSync(dir, { recursive: true })
}
