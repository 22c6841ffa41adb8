import { networkInterfaces } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { Bonjour } from 'bonjour-service'
import { messageOf, SerialQueue } from 'svc-gateway/plugin'

/** What is announced in the local network. */
export interface Announcement {
  /** Id of the service. */
  readonly id: string
  /** As people see it in a list of their network. */
  readonly title: string
  readonly name: string
  readonly port: number
}

export interface ResponderData {
  /** Ends with `.local`. */
  readonly hostname: string
  /** Names of network interfaces; null for all that lead out of the machine. */
  readonly interfaces: readonly string[] | null
}

export interface ResponderOrder {
  readonly id: number
  /** These and no others. */
  readonly announce: readonly Announcement[]
}

export type ResponderReply = { readonly id: number } & ({ readonly announced: readonly string[] } | { readonly problem: string })

/** What was announced is so no more, for this reason. No order asked for it. */
export interface ResponderLoss {
  readonly lost: string
}

/** Asking the network whether a name is taken takes a second; more means that it is. */
const UP_MS = 5_000
const NETWORK_MS = 15_000

const { hostname, interfaces } = workerData as ResponderData
let wanted: readonly Announcement[] = []
let responders: Bonjour[] = []
let told = ''

/** One for each network, as addresses. */
function networks (): string[] {
  return Object.entries(networkInterfaces()).flatMap(([name, all = []]) => {
    const usable = all.filter(({ family, internal }) => family === 'IPv4' && (interfaces === null ? !internal : interfaces.includes(name)))
    return usable.slice(0, 1).map(({ address }) => address)
  })
}

async function withdraw (): Promise<void> {
  const before = responders
  responders = []
  await Promise.all(before.map(async responder => {
    await new Promise<void>(resolve => { responder.unpublishAll(resolve) })
    await new Promise<void>(resolve => { responder.destroy(resolve) })
  }))
}

async function announce (): Promise<void> {
  await withdraw()
  told = networks().join()
  if (wanted.length === 0) return
  for (const address of networks()) {
    const options = { interface: address, bind: '0.0.0.0' } as object
    responders.push(new Bonjour(options, (error: Error) => { throw error }))
  }
  await Promise.all(responders.flatMap(responder => wanted.map(({ title, name, port }) => {
    const service = responder.publish({ name: title, type: 'http', port, host: hostname, txt: { path: '/', name }, disableIPv6: true })
    return new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => { reject(new Error(`"${title}" is announced by another machine`)) }, UP_MS)
      service.once('up', () => { clearTimeout(timer); resolve() })
    })
  })))
}

const steps = new SerialQueue()
const say = (word: ResponderReply | ResponderLoss): void => { parentPort!.postMessage(word) }

parentPort!.on('message', ({ id, announce: services }: ResponderOrder) => {
  const step = steps.run(async () => {
    wanted = services
    await announce()
  })
  void step.then(
    () => { say({ id, announced: services.map(service => service.id) }) },
    (error: unknown) => { say({ id, problem: messageOf(error) }) }
  )
})
// another network, another address
setInterval(() => {
  const step = steps.run(async () => {
    if (wanted.length > 0 && networks().join() !== told) await announce()
  })
  step.catch((error: unknown) => { say({ lost: messageOf(error) }) })
}, NETWORK_MS)
