import { readFile } from 'node:fs/promises'
import Docker from 'dockerode'
import t from 'tap'
import { testEngine } from '../kernel/runtime/engines.js'
import { freeSlotPort, liveHome, startLive, writeHome } from './live-gateway.js'
import { chats, recalls, refusesBothModes, reranks, speaksMessages, speaksResponses, textHome, usesTools } from './text-surfaces.js'

t.setTimeout(180_000)

t.test('every text surface of the real llama.cpp in containers, in the clients that people use', async t => {
  const engine = await testEngine(t, 'docker')
  if (engine === null) return
  const home = await liveHome(t, { 'etc/svc/svc.toml': '[slots]\nautostart = false\n' })
  const ports: number[] = []
  for (let from = 7400; ports.length < 6; from = ports.at(-1)! + 1) ports.push(await freeSlotPort(from))
  await writeHome(home, textHome(home, ports))
  const docker = new Docker({ socketPath: new URL(engine.host).pathname })
  t.teardown(async () => {
    const instance = (await readFile(`${home}/var/lib/svc/instance-id`, 'utf8')).trim()
    const left = await docker.listContainers({ all: true, filters: { label: [`svc.instance=${instance}`] } })
    for (const { Id } of left) await docker.getContainer(Id).remove({ force: true })
  })
  const gateway = await startLive(t, home, { DOCKER_HOST: engine.host, SVC_TOOLBOX_IMAGE_CPU: engine.llamaImage })
  await t.test('chat and completions', t => chats(t, gateway.url))
  await t.test('embeddings', t => recalls(t, gateway.url))
  await t.test('reranking', t => reranks(t, gateway.url))
  await t.test('both modes in one engine', t => refusesBothModes(t, gateway.url))
  await t.test('tools', t => usesTools(t, gateway.url))
  await t.test('messages', t => speaksMessages(t, gateway.url))
  await t.test('responses', t => speaksResponses(t, gateway.url))
  await gateway.kill('SIGTERM')
})
