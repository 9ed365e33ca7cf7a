"""Releases on the Hub: plan and publish one, load it back, verify it. All traffic is that of `huggingface_hub`."""
