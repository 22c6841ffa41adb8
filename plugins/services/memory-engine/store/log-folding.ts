import { LogFolding } from 'svc-gateway/plugin'
import type { Background } from '../core.js'

/** Every write counts, since a text also goes with an update, a trigger or a slice behind an answer. */
export const startLogFolding: Background = ({ store, closing }) => {
  const folding = new LogFolding(store, {
    setTimer: (ms, fn) => {
      const timer = setTimeout(fn, ms).unref()
      return { cancel: () => clearTimeout(timer) }
    }
  })
  store.onWrite(() => folding.wrote())
  closing.addEventListener('abort', () => folding.stop(), { once: true })
}
