import { writeFileAtomic } from '../../../kernel/config/files/atomic-file.js'

/** Writes one file over and over until it is killed; tells the parent after the first time. */
const path = process.argv[2]!
for (let i = 0; ; i++) {
  await writeFileAtomic(path, `round = ${i}\ntext = "${'x'.repeat(200_000)}"\nend = ${i}\n`)
  if (i === 0) process.send?.('writing')
}
