"""Training steps of models that transformers, timm and torchvision have, at small sizes and without their weights: of those
packages that are installed (see torchsteps.py for what a step is). MISSING names the others."""

import importlib

import torch
from torch.nn import functional

from torchtraining import adamw, seeded, sgd, trained

WORDS, LENGTH, BATCH, CLASSES = 128, 32, 4, 10


def words():
    ids = torch.randint(2, WORDS, (BATCH, LENGTH))
    return {"input_ids": ids, "labels": ids.clone()}


def words_and_mask():
    mask = (torch.arange(LENGTH) < torch.tensor([LENGTH, 25, 17, LENGTH])[:, None]).long()
    return {**words(), "attention_mask": mask}


def own_loss(model, batch):
    return model(**batch).loss


def pictures(side=32):
    return lambda: (torch.randn(BATCH, 3, side, side), torch.randint(0, CLASSES, (BATCH,)))


def class_loss(model, images, labels):
    return functional.cross_entropy(model(images), labels)


# --- transformers -----------------------------------------------------------------------------------------------------


def of_transformers(name, example, optimizer=adamw, options=None, **config):
    """A step of transformers' class, with a configuration of the same family."""
    def make():
        package = importlib.import_module("transformers")
        family = name.split("For")[0].removesuffix("LMHeadModel")
        seeded()
        model = getattr(package, name)(getattr(package, family + "Config")(**config)).train()
        return trained(model, example, own_loss, optimizer, **(options or {}))
    return make


BERT = {"vocab_size": WORDS, "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96,
        "max_position_embeddings": LENGTH}
LLAMA = {**BERT, "num_key_value_heads": 2}
T5 = {"vocab_size": WORDS, "d_model": 48, "d_kv": 12, "d_ff": 96, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}
GPT2 = {"vocab_size": WORDS, "n_positions": LENGTH, "n_embd": 48, "n_layer": 2, "n_head": 4, "bos_token_id": 0, "eos_token_id": 1}
VIT = {**BERT, "image_size": 32, "patch_size": 4, "num_labels": CLASSES}
LEFT_OUT = ("vocab_size", "max_position_embeddings")


def labelled_pictures():
    return {"pixel_values": torch.randn(BATCH, 3, 32, 32), "labels": torch.randint(0, CLASSES, (BATCH,))}


TRANSFORMERS = {
    "hf_gpt2": of_transformers("GPT2LMHeadModel", words, options={"clip": 1.0, "micro": True}, **GPT2),
    "hf_llama": of_transformers("LlamaForCausalLM", words, options={"autocast": torch.bfloat16}, **LLAMA),
    "hf_bert": of_transformers("BertForMaskedLM", words_and_mask, options={"clip": 1.0}, **BERT),
    "hf_t5": of_transformers("T5ForConditionalGeneration", words_and_mask, **T5),
    "hf_vit": of_transformers("ViTForImageClassification", labelled_pictures,
                              **{key: value for key, value in VIT.items() if key not in LEFT_OUT}),
}

# --- timm and torchvision ---------------------------------------------------------------------------------------------


def of_timm(name, side=32, **options):
    def make():
        seeded()
        model = importlib.import_module("timm").create_model(name, pretrained=False, num_classes=CLASSES, **options)
        return trained(model, pictures(side), class_loss, adamw, clip=1.0)
    return make


def of_torchvision(name, side=32, **options):
    def make():
        seeded()
        model = getattr(importlib.import_module("torchvision.models"), name)(num_classes=CLASSES, **options)
        return trained(model, pictures(side), class_loss, sgd)
    return make


SWIN = {"img_size": 32, "patch_size": 2, "window_size": 4, "embed_dim": 24, "depths": (2, 2), "num_heads": (2, 4)}
TIMM = {"timm_convnext": of_timm("convnext_atto", depths=(1, 1, 2, 1), dims=(16, 32, 48, 64), drop_path_rate=0.1),
        "timm_swin": of_timm("swin_tiny_patch4_window7_224", **SWIN)}
TORCHVISION = {"tv_resnet18": of_torchvision("resnet18"), "tv_mobilenet": of_torchvision("mobilenet_v3_small", 64)}


def is_there(package):
    try:
        importlib.import_module(package)
    except ImportError:
        return False
    return True


PACKAGES = {"transformers": TRANSFORMERS, "timm": TIMM, "torchvision": TORCHVISION}
MISSING = [package for package in PACKAGES if not is_there(package)]
STEPS = {name: make for package, steps in PACKAGES.items() if package not in MISSING for name, make in steps.items()}
for name, make in STEPS.items():
    make.__name__ = name
