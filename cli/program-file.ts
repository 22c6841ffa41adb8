import { fileURLToPath } from 'node:url'

/** Set where the bundle is made, which lies in a folder of its own. */
declare const SVC_BUNDLED: true | undefined

/** The program that this code belongs to, as it is started. */
export const programFile = fileURLToPath(new URL(typeof SVC_BUNDLED === 'undefined' ? './svc.js' : '../svc.cjs', import.meta.url))
