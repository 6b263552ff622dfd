import type { S3Client } from '@aws-sdk/client-s3'
import { type Claim, claimProblem, isClaimKey, isDayBefore } from '../core/claim.ts'
import { messageOf } from '../core/error.ts'
import type { Secret } from '../core/secret.ts'
import type { ObjectFound, Objects } from '../ports/objects.ts'
import type { Clock } from '../ports.ts'

export interface S3StoreOptions {
  readonly bucket: string
  /** Before each key, with its `/`; may be empty. */
  readonly prefix: string
  readonly region: string
  /** Of a store that is compatible; null: AWS. */
  readonly endpoint: string | null
  readonly accessKeyId: Secret
  readonly secretAccessKey: Secret
  readonly timeoutMs: number
  readonly clock: Clock
}

/** Bodies as objects of one bucket of Amazon S3, or of a store that is compatible. */
export class S3Store implements Objects {
  readonly #options: S3StoreOptions
  #opened: ReturnType<S3Store['open']> | null = null

  constructor(options: S3StoreOptions) {
    this.#options = options
  }

  /** The library is as large as a third of the rest: it is read when it is needed. */
  private async open(): Promise<{ sdk: typeof import('@aws-sdk/client-s3'); client: S3Client }> {
    const { region, endpoint, accessKeyId, secretAccessKey, timeoutMs } = this.#options
    const sdk = await import('@aws-sdk/client-s3')
    const client = new sdk.S3Client({
      region,
      // Its own retries would eat the attempt's deadline: who asks comes again.
      maxAttempts: 1,
      requestHandler: { connectionTimeout: timeoutMs, requestTimeout: timeoutMs, throwOnRequestTimeout: true },
      ...(endpoint === null ? {} : { endpoint, forcePathStyle: true }),
      credentials: { accessKeyId: accessKeyId.reveal(), secretAccessKey: secretAccessKey.reveal() },
      // Stores that are only compatible do not all know the newer checksums; the claim's digest is checked anyway.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
    })
    return { sdk, client }
  }

  #sdk(): ReturnType<S3Store['open']> {
    this.#opened ??= this.open()
    return this.#opened
  }

  async get(claim: Claim): Promise<ObjectFound> {
    if (!isClaimKey(claim.key)) return { t: 'bad', detail: 'the key is no key of this store' }
    const { sdk, client } = await this.#sdk()
    const { abortSignal, cancel } = this.#deadline(this.#options.timeoutMs)
    try {
      const found = await client.send(new sdk.GetObjectCommand(this.#at(claim)), { abortSignal })
      // Before it is read: its size is somebody else's choice.
      if (found.ContentLength !== claim.bytes || found.Body === undefined) {
        await found.Body?.transformToWebStream().cancel()
        return { t: 'bad', detail: `the object has ${found.ContentLength} bytes, claimed were ${claim.bytes}` }
      }
      const body = Buffer.from(await found.Body.transformToByteArray())
      const problem = claimProblem(claim, body)
      return problem === null ? { t: 'found', body } : { t: 'bad', detail: problem }
    } catch (error) {
      // A bucket that is missing is a mistake of the operator, and no delivery's end.
      if (error instanceof sdk.S3ServiceException && error.name === 'NoSuchKey') return { t: 'missing' }
      return { t: 'unavailable', detail: messageOf(error).slice(0, 200) }
    } finally {
      cancel()
    }
  }

  async put(claim: Claim, body: Buffer): Promise<void> {
    const input = { ...this.#at(claim), Body: body, ContentLength: body.length }
    const { sdk, client } = await this.#sdk()
    const { abortSignal, cancel } = this.#deadline(putMs)
    try {
      await client.send(new sdk.PutObjectCommand(input), { abortSignal })
    } finally {
      cancel()
    }
  }

  /** S3 says the same whether there was one or not. */
  async remove(key: string): Promise<boolean> {
    if (!isClaimKey(key)) return false
    const { sdk, client } = await this.#sdk()
    const { abortSignal, cancel } = this.#deadline(putMs)
    try {
      await client.send(new sdk.DeleteObjectCommand(this.#at({ key })), { abortSignal })
      return true
    } finally {
      cancel()
    }
  }

  /** One object after the other: requests for many need checksums that not every compatible store takes. */
  async removeBefore(timeMs: number, dryRun: boolean): Promise<readonly string[]> {
    const { prefix } = this.#options
    const found = await this.#list(prefix, '/')
    const days = found.folders.map((name) => name.slice(prefix.length, -1)).filter((day) => isDayBefore(day, timeMs))
    if (dryRun) return days.sort()
    const { sdk, client } = await this.#sdk()
    for (const day of days)
      for (const Key of (await this.#list(`${prefix}${day}/`, undefined)).keys)
        await client.send(new sdk.DeleteObjectCommand({ Bucket: this.#options.bucket, Key }))
    return days.sort()
  }

  async #list(prefix: string, delimiter: string | undefined): Promise<{ folders: string[]; keys: string[] }> {
    const { sdk, client } = await this.#sdk()
    const input = { Bucket: this.#options.bucket, Prefix: prefix, Delimiter: delimiter }
    const [folders, keys]: [string[], string[]] = [[], []]
    for await (const page of sdk.paginateListObjectsV2({ client }, input)) {
      for (const { Prefix } of page.CommonPrefixes ?? []) if (Prefix !== undefined) folders.push(Prefix)
      for (const { Key } of page.Contents ?? []) if (Key !== undefined) keys.push(Key)
    }
    return { folders, keys }
  }

  /** What it answers now says nothing for later: a store that is away is waited for. */
  async problem(): Promise<null> {
    return null
  }

  close(): void {
    void this.#opened?.then(({ client }) => client.destroy())
  }

  /** Of a request in all, its body included: the client's own time-outs begin anew with every byte. */
  #deadline(ms: number): { abortSignal: AbortSignal; cancel: () => void } {
    const controller = new AbortController()
    const cancel = this.#options.clock.after(ms, () => controller.abort(new Error(`no answer in ${ms} ms`)))
    return { abortSignal: controller.signal, cancel }
  }

  #at({ key }: Pick<Claim, 'key'>): { Bucket: string; Key: string } {
    return { Bucket: this.#options.bucket, Key: this.#options.prefix + key }
  }
}

const putMs = 60_000
