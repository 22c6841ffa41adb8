import { lint } from './lint.js'

/** A process of its own: a template may loop for ever, or take all the memory there is. */
process.on('message', (source: string) => { process.send!(lint(source)) })
process.on('disconnect', () => process.exit(0))
process.send!('ready')
