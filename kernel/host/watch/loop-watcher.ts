import { Session, type Debugger, type InspectorNotification } from 'node:inspector'
import { parentPort, workerData } from 'node:worker_threads'

/** The thread of `watchLoop`: its data are the beats of the loop that it watches. */
const beats = workerData as Int32Array
const LOOK_MS = 250
const BLOCKED_MS = 1_000

let last = -1
let since = performance.now()
let looked = performance.now()
let isTold = false

setInterval(() => {
  const now = performance.now()
  const beat = Atomics.load(beats, 0)
  // a machine that slept, or has no time for this thread either, says nothing about the loop
  if (beat !== last || now - looked > 5 * LOOK_MS) {
    last = beat
    since = now
    isTold = false
  }
  looked = now
  if (isTold || now - since < BLOCKED_MS) return
  isTold = true
  tellStack()
}, LOOK_MS)

/** Stops the other thread for as long as it takes to read its stack. */
function tellStack (): void {
  const session = new Session()
  const urls = new Map<string, string>()
  session.connectToMainThread()
  session.on('Debugger.scriptParsed', ({ params }: InspectorNotification<Debugger.ScriptParsedEventDataType>) => {
    urls.set(params.scriptId, params.url)
  })
  session.on('Debugger.paused', ({ params }: InspectorNotification<Debugger.PausedEventDataType>) => {
    parentPort?.postMessage(params.callFrames.map(({ location }) =>
      ({ url: urls.get(location.scriptId) ?? '', line: location.lineNumber + 1, column: location.columnNumber === undefined ? undefined : location.columnNumber + 1 })))
    session.post('Debugger.disable')
    session.disconnect()
  })
  session.post('Debugger.enable')
  session.post('Debugger.pause')
}
