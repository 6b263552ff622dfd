import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseDocument } from 'yaml'
import { HooktideError, messageOf } from '../core/error.ts'
import { type Problem, problemText } from '../core/result.ts'
import { type TopicFile, type TopicSettings, topicSpecs } from '../core/topic-files.ts'
import type { TopicSpec } from '../core/topic-spec.ts'

/** The topic files that come with Hooktide. */
export const topicFolder = join(import.meta.dirname, '..', '..', 'topics')

/** Specs of all topics. Rejects `config.invalid` with every problem of every file. */
export async function readTopicSpecs(settings: TopicSettings, folder = topicFolder): Promise<readonly TopicSpec[]> {
  const names = await readdir(folder).catch((cause: unknown) => {
    throw new HooktideError('config.invalid', `the topic files in ${folder} can not be read: ${messageOf(cause)}`, {
      cause,
      remedy: 'Give the folder that holds one YAML file per topic.',
    })
  })
  const unreadable: Problem[] = []
  const files: TopicFile[] = []
  for (const file of names.filter((name) => /\.ya?ml$/.test(name)).sort()) {
    const document = parseDocument(await readFile(join(folder, file), 'utf8'))
    for (const { message } of document.errors) {
      const line = message.split('\n')[0] ?? ''
      unreadable.push({ field: file, value: '', message: `is no YAML: ${line}`, remedy: 'correct it' })
    }
    if (document.errors.length === 0) files.push({ file, content: document.toJS() })
  }
  const { specs, problems } = topicSpecs(files, settings)
  const all = [...unreadable, ...problems]
  if (all.length === 0) return specs
  const count = all.length === 1 ? 'one problem' : `${all.length} problems`
  throw new HooktideError('config.invalid', `the topic files in ${folder} have ${count}`, {
    details: all.map(problemText),
    remedy: 'Correct every line named.',
  })
}
