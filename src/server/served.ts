// A model as the server's threads load it, with the checksum that tells one version from another.
import type { Classifier } from '../learn/classifier.ts';
import { folderSource } from '../store/folder.ts';
import { manifestName } from '../store/manifest.ts';
import { openModel } from '../store/open.ts';

export async function loadServed(folder: string): Promise<{ classifier: Classifier; version: string }> {
  const source = folderSource(folder);
  // Read once, so that the version is that of the model loaded even if the folder is replaced meanwhile.
  const manifest = await source.read(manifestName);
  const read = async (file: string) => (file === manifestName ? manifest : source.read(file));
  const classifier = await openModel({ ...source, read });
  const { sha256 } = JSON.parse(new TextDecoder().decode(manifest)) as { sha256: string };
  return { classifier, version: sha256 };
}
